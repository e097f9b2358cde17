/* Added tokens: texts such as <|endoftext|> that are tokens wherever they occur. Some are looked
 * for in the text as it is, others after normalization; at each place the longest one is found. */
#include <stdio.h>
#include <string.h>
#include "parts.h"

/* ---- splitting a text ---- */

static bool is_word(const Tokenizer *t, const char *at, size_t n)
{
  Found f = {0};
  bool more = false;
  size_t size;
  char_at(at, n, &size);
  return !pattern_next(t->word, (View){at, size, false}, &f, &more) && more;
}

static size_t last_character(View text, size_t end)
{
  do end--;
  while (end && (text.at[end] & 0xc0) == 0x80);
  return end;
}

/* Whether the token may be used here. */
static bool applies(const Tokenizer *t, const Added *a, bool plain, View text, size_t from,
                    size_t end)
{
  if (a->special && (plain || marks_plain(t->marks, text.at + from, end - from))) return false;
  if (!a->single_word) return true;
  size_t before = from ? last_character(text, from) : 0;
  return !(from && is_word(t, text.at + before, from - before)) &&
         !(end < text.n && is_word(t, text.at + end, text.n - end));
}

/* The text between two added tokens. */
static ampc_status between(Tokenizer *t, bool normalized, bool plain, View text)
{
  if (!text.n) return AMPC_OK;
  if (normalized) return split_on(t, 0, text);
  if (!t->normalize.n) return added_split(t, true, plain, text);
  Str *now = &t->text[0];
  str_clear(now);
  now->begins = text.begins;
  if (t->pieces) {
    pieces_normalize(t, text, now);
    return now->failed ? out_of_memory(t) : split_on(t, 0, str_view(now));
  }
  str_add(now, text.at, text.n);
  ampc_status status = now->failed ? out_of_memory(t) : normalize_all(t, now, &t->text[1]);
  return status ? status : added_split(t, true, plain, str_view(now));
}

/* Adds the blanks beside a token to it, if the token takes them. */
static void take_blanks(const Added *a, View text, size_t done, size_t *from, size_t *end)
{
  size_t size;
  for (size_t last; a->left && *from > done; *from = last) {
    last = last_character(text, *from);
    if (!is_blank(char_at(text.at + last, *from - last, &size))) break;
  }
  for (; a->right && *end < text.n; *end += size)
    if (!is_blank(char_at(text.at + *end, text.n - *end, &size))) break;
}

ampc_status added_split(Tokenizer *t, bool normalized, bool plain, View text)
{
  const Trie *trie = &t->added[normalized];
  size_t done = 0, size;
  ampc_status status = AMPC_OK;
  for (size_t at = 0; at < text.n && trie->n && !status; at += size) {
    uint32_t id = 0;
    size = 1;
    if (!t->first[normalized][(uint8_t)text.at[at]]) continue;
    size_t n = trie_longest(trie, text.at + at, text.n - at, &id), from = at, end = at + n;
    if (n) size = n;
    if (!n || !applies(t, &t->token[id].added, plain, text, from, end)) continue;
    take_blanks(&t->token[id].added, text, done, &from, &end);
    size_t before = from > done ? from - done : 0;
    status = between(t, normalized, plain, (View){text.at + done, before, text.begins && !done});
    if (!status) status = put_id(t, id);
    if (!status) status = marks_end(t, text.at + end);
    done = end;
  }
  if (status || done >= text.n) return status;
  return between(t, normalized, plain, (View){text.at + done, text.n - done, text.begins && !done});
}

/* ---- reading ---- */

static ampc_status bad_added(const Tokenizer *t, size_t i, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE, "%s: added_tokens[%zu] %s", t->name, i, why);
}

static ampc_status read_added(const Tokenizer *t, size_t i, const json_t *row, int64_t *id,
                              Added *a)
{
  const struct {
    const char *name;
    bool *to;
  } flags[] = {{"single_word", &a->single_word},
               {"lstrip", &a->left},
               {"rstrip", &a->right},
               {"normalized", &a->normalized},
               {"special", &a->special}};
  const size_t n = sizeof flags / sizeof *flags;
  const json_t *text = json_object_get(row, "content"), *number = json_object_get(row, "id");
  if (!json_is_string(text)) return bad_added(t, i, "has no text \"content\"");
  if (!json_is_integer(number)) return bad_added(t, i, "has no whole number \"id\"");
  *id = json_integer_value(number);
  for (size_t j = 0; j < n; j++) {
    const json_t *flag = json_object_get(row, flags[j].name);
    if (!json_is_boolean(flag))
      return bad_added(t, i,
                       "needs true or false for single_word, lstrip, rstrip, normalized and "
                       "special");
    *flags[j].to = json_is_true(flag);
  }
  return json_object_size(row) == n + 2 ? AMPC_OK
                                        : bad_added(t, i, "has a field that is not known");
}

/* Notes the text that is looked for: for a normalized token, its normalized text. */
static ampc_status read_match(Tokenizer *t, size_t i, uint32_t id)
{
  const Added *a = &t->token[id].added;
  Span text = t->token[id].text;
  Str *now = &t->text[0];
  str_clear(now);
  str_span(now, text);
  ampc_status status = now->failed     ? out_of_memory(t)
                       : a->normalized ? normalize_all(t, now, &t->text[1])
                                       : AMPC_OK;
  if (status) return status;
  Span match = {now->at, now->n};
  if (!now->n) return bad_added(t, i, "is empty after normalization");
  if (trie_find(&t->added[a->normalized], match) != NO_ID)
    return bad_added(t, i, "is the same text as one before it");
  if (now->n != text.n || memcmp(now->at, text.at, now->n) != 0) {
    if (memchr(now->at, 0, now->n)) return bad_added(t, i, "has a NUL");
    if (!(t->token[id].decoded = strndup(now->at, now->n))) return out_of_memory(t);
  }
  t->first[a->normalized][(uint8_t)*now->at] = true;
  return trie_add(&t->added[a->normalized], match, id) ? AMPC_OK : out_of_memory(t);
}

static ampc_status read_one(Tokenizer *t, size_t i, const json_t *row, uint32_t *next)
{
  char path[40];
  int64_t id = 0;
  Added a = {0};
  ampc_status status = read_added(t, i, row, &id, &a);
  if (status) return status;
  const json_t *content = json_object_get(row, "content");
  Span text = {json_string_value(content), json_string_length(content)};
  if (!text.n) return bad_added(t, i, "is empty");
  uint32_t given = trie_find(&t->vocabulary, text);
  bool new = given == NO_ID;
  if (new) given = (*next)++;
  if (id != given)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s: added_tokens[%zu] has the id %lld, but by %s it would be %u", t->name, i,
                     (long long)id, new ? "its place after the vocabulary" : "model.vocab", given);
  snprintf(path, sizeof path, "added_tokens[%zu]", i);
  if (new) status = token_set(t, path, id, text, true);
  if (status) return status;
  t->token[id].added = a;
  return read_match(t, i, given);
}

ampc_status added_read(Tokenizer *t, const json_t *list)
{
  static const char word[] = "[" PATTERN_WORD "]";
  size_t i;
  json_t *row;
  uint32_t next = t->n_vocabulary;
  ampc_status status = pattern_compile(t->name, "added_tokens", PATTERN_own,
                                       (Span){word, sizeof word - 1}, &t->word);
  if (!json_is_array(list) && list && !json_is_null(list))
    return ampc_fail(AMPC_BAD_FILE, "%s: added_tokens is not a list", t->name);
  json_array_foreach(list, i, row)
  {
    if (status) return status;
    status = read_one(t, i, row, &next);
  }
  return status;
}
