/* A tokenizer: reading it, its tokens, and encoding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/file.h"
#include "common/shown.h"
#include "parts.h"

ampc_status out_of_memory(const Tokenizer *t)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", t->name);
}

const char *show_span(char out[SHOWN], Span s)
{
  char copy[SHOWN] = "";
  memcpy(copy, s.at, s.n < SHOWN ? s.n : SHOWN - 1);
  return ampc_show(out, SHOWN, copy, "");
}

/* ---- tokens ---- */

ampc_status tokens_reserve(Tokenizer *t, uint64_t n)
{
  if (n > TOKENIZER_MOST_IDS)
    return ampc_fail(AMPC_BAD_FILE, "%s: the vocabulary needs ids of %d or more, the most is %d",
                     t->name, TOKENIZER_MOST_IDS, TOKENIZER_MOST_IDS - 1);
  if (n <= t->n_tokens) return AMPC_OK;
  if (!grow(&t->token, &t->token_cap, n, sizeof *t->token)) return out_of_memory(t);
  memset(t->token + t->n_tokens, 0, (n - t->n_tokens) * sizeof *t->token);
  t->n_tokens = (uint32_t)n;
  return AMPC_OK;
}

ampc_status token_set(Tokenizer *t, const char *path, int64_t id, Span text, bool added)
{
  char shown[SHOWN], other[SHOWN];
  show_span(shown, text);
  if (id < 0 || id >= TOKENIZER_MOST_IDS)
    return ampc_fail(AMPC_BAD_FILE, "%s: %s: the id %lld of \"%s\" is not in 0..%d", t->name, path,
                     (long long)id, shown, TOKENIZER_MOST_IDS - 1);
  ampc_status status = tokens_reserve(t, (uint64_t)id + 1);
  if (status) return status;
  Token *token = &t->token[id];
  if (token->text.at)
    return ampc_fail(AMPC_BAD_FILE, "%s: %s: \"%s\" and \"%s\" have the same id %lld", t->name,
                     path, show_span(other, token->text), shown, (long long)id);
  token->text = text;
  t->n_known++;
  return added || trie_add(&t->vocabulary, text, (uint32_t)id) ? AMPC_OK : out_of_memory(t);
}

/* Whether a U+2581 follows another character. */
static bool has_inner_blank(Span text)
{
  static const char mark[] = "\u2581";
  for (size_t i = 1; i + 3 <= text.n; i++)
    if (memcmp(text.at + i, mark, 3) == 0 && (i < 3 || memcmp(text.at + i - 3, mark, 3) != 0))
      return true;
  return false;
}

ampc_status vocabulary_finish(Tokenizer *t)
{
  char byte[8];
  t->cuts_at_blanks = trie_find(&t->vocabulary, (Span){"\u2581", 3}) != NO_ID;
  for (uint32_t id = 0; id < t->n_tokens && t->cuts_at_blanks; id++)
    t->cuts_at_blanks = !has_inner_blank(t->token[id].text);
  for (unsigned b = 0; b < 256; b++) {
    snprintf(byte, sizeof byte, "<0x%02X>", b);
    t->byte_id[b] = trie_find(&t->vocabulary, (Span){byte, 6});
  }
  return AMPC_OK;
}

uint32_t tokenizer_size(const Tokenizer *t)
{
  return t->n_tokens;
}

uint32_t tokenizer_id(const Tokenizer *t, const char *token, size_t n)
{
  for (uint32_t id = 0; id < t->n_tokens; id++) {
    Span text = t->token[id].text;
    if (text.at && text.n == n && memcmp(text.at, token, n) == 0) return id;
  }
  return NO_ID;
}

/* ---- reading ---- */

/* How many bytes of a text are UTF-8 from its beginning. */
static size_t valid_bytes(const char *text, size_t n)
{
  size_t i = 0;
  while (i < n) {
    int size = utf8_step(text + i, n - i);
    if (size < 0) break;
    i += (size_t)size;
  }
  return i;
}

static ampc_status read_bytes(Tokenizer *t, const char *bytes, size_t n)
{
  json_error_t error;
  char shown[120];
  if (!n || *bytes != '{') return pieces_read(t, bytes, n);
  t->root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
  if (!t->root)
    return ampc_fail(AMPC_BAD_FILE, "%s, line %d: %s", t->name, error.line,
                     ampc_show(shown, sizeof shown, error.text, ""));
  return description_read(t);
}

ampc_status tokenizer_read(const char *name, const char *bytes, size_t n, Tokenizer **out)
{
  Tokenizer *t = calloc(1, sizeof *t);
  *out = NULL;
  if (!t) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", name);
  t->unk = NO_ID;
  if (!(t->name = strdup(name))) {
    free(t);
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", name);
  }
  ampc_status status = read_bytes(t, bytes, n);
  if (!status && t->split.n) {
    t->scratch = calloc(2 * t->split.n, sizeof *t->scratch);
    if (!t->scratch) status = out_of_memory(t);
  }
  if (status)
    tokenizer_close(t);
  else
    *out = t;
  return status;
}

ampc_status tokenizer_open(const char *path, Tokenizer **out)
{
  char *bytes;
  int64_t n;
  *out = NULL;
  ampc_status status = file_read(FILE_DATA, path, &bytes, &n);
  if (status) return status;
  status = tokenizer_read(path, bytes, (size_t)n, out);
  free(bytes);
  return status;
}

static void close_parts(Parts *list)
{
  for (size_t i = 0; i < list->n; i++) {
    pattern_free(list->at[i].pattern);
    free(list->at[i].map.bytes);
  }
  free(list->at);
}

void tokenizer_close(Tokenizer *t)
{
  if (!t) return;
  for (size_t i = 0; t->scratch && i < 2 * t->split.n; i++) free(t->scratch[i].at);
  for (uint32_t i = 0; i < t->n_tokens; i++) free(t->token[i].decoded);
  close_parts(&t->normalize);
  close_parts(&t->split);
  close_parts(&t->decode);
  pattern_free(t->word);
  trie_free(&t->vocabulary);
  trie_free(&t->user);
  for (int i = 0; i < 2; i++) {
    trie_free(&t->added[i]);
    free(t->text[i].at);
  }
  void *const owned[] = {t->name,     t->bytes,  t->held.at,   t->scratch,   t->before.at,
                         t->after.at, t->token,  t->merges.at, t->merge_ids, t->ranks,
                         t->cache,    t->symbol, t->heap,      t->best};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
  json_decref(t->root);
  free(t);
}

/* ---- encoding ---- */

ampc_status tokenizer_append(Ids *ids, uint32_t id)
{
  if (!grow(&ids->at, &ids->cap, ids->n + 1, sizeof *ids->at))
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for ids");
  ids->at[ids->n++] = id;
  return AMPC_OK;
}

ampc_status put_id(Tokenizer *t, uint32_t id)
{
  if (t->tell && t->out->n % (1 << 20) == 1) t->tell(t->about);
  return tokenizer_append(t->out, id);
}

ampc_status no_unknown(const Tokenizer *t, View text)
{
  size_t size;
  return ampc_fail(AMPC_BAD_FILE, "U+%04X has no token in %s, which has no unknown token either",
                   (unsigned)char_at(text.at, text.n, &size), t->name);
}

ampc_status put_unknown(Tokenizer *t, View text)
{
  ampc_status status = AMPC_OK;
  bool bytes = t->model.byte_fallback;
  for (size_t i = 0; i < text.n && bytes; i++) bytes = t->byte_id[(uint8_t)text.at[i]] != NO_ID;
  if (!bytes) return t->unk == NO_ID ? no_unknown(t, text) : put_id(t, t->unk);
  for (size_t i = 0; i < text.n && !status; i++)
    status = put_id(t, t->byte_id[(uint8_t)text.at[i]]);
  return status;
}

static ampc_status put_ids(Tokenizer *t, const Ids *ids)
{
  ampc_status status = AMPC_OK;
  for (size_t i = 0; i < ids->n && !status; i++) status = put_id(t, ids->at[i]);
  return status;
}

void tokenizer_watch(Tokenizer *t, void (*tell)(void *about), void *about)
{
  t->tell = tell;
  t->about = about;
}

/* After a text that failed, the next one may succeed. */
void forget_failures(Tokenizer *t)
{
  t->text[0].failed = t->text[1].failed = t->held.failed = false;
  for (size_t i = 0; i < 2 * t->split.n; i++) t->scratch[i].failed = false;
}

ampc_status text_check(const char *text, size_t n)
{
  size_t valid = valid_bytes(text, n);
  if (valid == n) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "byte %zu of the text, 0x%02x, is not UTF-8", valid,
                   (unsigned)(uint8_t)text[valid]);
}

ampc_status tokenizer_encode_piece(Tokenizer *t, const char *text, size_t n, unsigned how, Ids *out)
{
  ampc_status status = text_check(text, n);
  if (status) return status;
  t->out = out;
  if (how & ENCODE_before) status = put_ids(t, &t->before);
  View view = {text, n, !(how & ENCODE_continued)};
  if (!status) status = added_split(t, false, how & ENCODE_plain, view);
  if (status) forget_failures(t);
  return status || !(how & ENCODE_after) ? status : put_ids(t, &t->after);
}

ampc_status tokenizer_encode(Tokenizer *t, const char *text, size_t n, bool special, bool plain,
                             Ids *out)
{
  unsigned how = (special ? ENCODE_before | ENCODE_after : 0) | (plain ? ENCODE_plain : 0);
  return tokenizer_encode_piece(t, text, n, how, out);
}
