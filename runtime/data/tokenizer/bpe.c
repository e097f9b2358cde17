/* BPE: the pair of symbols with the lowest rank is merged, the leftmost of equal ones first, until
 * no pair can be merged. A heap holds the pairs, so a word of n characters takes n log n steps.
 *
 * In a tokenizer.json a list of merges gives the ranks. In a .model two symbols can be merged if
 * their text is a token; the one with the highest score is first.
 *
 * Note [words]
 * A tokenizer of sentencepiece cuts a text into no words. No token of most of them has U+2581,
 * which stands for a blank, after another character. Then no merge crosses such a place, so a text
 * can be cut there, and each word is encoded alone. The result is the same. */
#include <stdlib.h>
#include <string.h>
#include "parts.h"

enum { SLOTS = 1 << 16, SLOT_TEXT = 31, SLOT_IDS = 8 };

/* The last word of each hash, with its ids. */
struct Slot {
  uint8_t n_text, n_ids;
  char text[SLOT_TEXT];
  uint32_t id[SLOT_IDS];
};

static const char mark[] = "\u2581";
enum { MARK = 3 };

size_t word_end(const Tokenizer *t, View text, size_t from)
{
  if (!t->cuts_at_blanks) return text.n;
  while (from + MARK <= text.n && memcmp(text.at + from, mark, MARK) == 0) from += MARK;
  const char *next = from < text.n ? memmem(text.at + from, text.n - from, mark, MARK) : NULL;
  return next ? (size_t)(next - text.at) : text.n;
}

/* ---- the heap ---- */

static bool precedes(Merge a, Merge b)
{
  return a.rank != b.rank ? a.rank < b.rank : a.left < b.left;
}

static bool heap_push(Tokenizer *t, Merge m)
{
  if (!grow(&t->heap, &t->heap_cap, t->n_heap + 1, sizeof m)) return false;
  size_t i = t->n_heap++;
  for (; i && precedes(m, t->heap[(i - 1) / 2]); i = (i - 1) / 2) t->heap[i] = t->heap[(i - 1) / 2];
  t->heap[i] = m;
  return true;
}

static Merge heap_pop(Tokenizer *t)
{
  Merge top = t->heap[0], last = t->heap[--t->n_heap];
  size_t i = 0;
  for (size_t next = 1; next < t->n_heap; next = 2 * i + 1) {
    if (next + 1 < t->n_heap && precedes(t->heap[next + 1], t->heap[next])) next++;
    if (!precedes(t->heap[next], last)) break;
    t->heap[i] = t->heap[next];
    i = next;
  }
  t->heap[i] = last;
  return top;
}

/* ---- merging ---- */

/* Finds how a symbol and the next one can be merged. */
static bool find_merge(const Tokenizer *t, const char *word, uint32_t left, Merge *out)
{
  const Symbol *a = &t->symbol[left], *b = &t->symbol[a->after];
  out->left = left;
  if (t->pieces) {
    if (a->frozen || b->frozen) return false;
    out->id = trie_find(&t->vocabulary, (Span){word + a->at, a->size + b->size});
    if (out->id != NO_ID) out->rank = t->ranks[out->id];
    return out->id != NO_ID;
  }
  if (a->id == NO_ID || b->id == NO_ID) return false;
  out->rank = map_get(&t->merges, (uint64_t)a->id << 32 | b->id);
  if (out->rank != NO_ID) out->id = t->merge_ids[out->rank];
  return out->rank != NO_ID;
}

static bool push_merge(Tokenizer *t, const char *word, int32_t left)
{
  Merge m;
  if (left < 0 || t->symbol[left].after < 0 || !find_merge(t, word, (uint32_t)left, &m))
    return true;
  return heap_push(t, m);
}

static bool merge_all(Tokenizer *t, const char *word)
{
  bool good = true;
  t->n_heap = 0;
  for (size_t i = 0; i + 1 < t->n_symbols && good; i++) good = push_merge(t, word, (int32_t)i);
  while (t->n_heap && good) {
    Merge now, m = heap_pop(t);
    Symbol *a = &t->symbol[m.left];
    /* the pair may have changed since it was pushed */
    if (!a->size || a->after < 0 || !find_merge(t, word, m.left, &now) || now.id != m.id) continue;
    Symbol *b = &t->symbol[a->after];
    a->id = m.id;
    a->size += b->size;
    a->after = b->after;
    b->size = 0;
    if (a->after >= 0) t->symbol[a->after].before = (int32_t)m.left;
    good = push_merge(t, word, a->before) && push_merge(t, word, (int32_t)m.left);
  }
  return good;
}

/* ---- symbols ---- */

static bool add_symbol(Tokenizer *t, uint32_t id, size_t at, size_t size)
{
  int32_t n = (int32_t)t->n_symbols;
  if (!grow(&t->symbol, &t->symbol_cap, t->n_symbols + 1, sizeof *t->symbol)) return false;
  if (n) t->symbol[n - 1].after = n;
  t->symbol[t->n_symbols++] = (Symbol){id, (uint32_t)at, (uint32_t)size, n - 1, -1, false};
  return true;
}

/* Adds a character that has no token, as its bytes. *done: all of them have tokens. */
static bool add_bytes(Tokenizer *t, const char *word, size_t at, size_t size, bool *done)
{
  bool good = true;
  *done = t->model.byte_fallback;
  for (size_t i = 0; i < size; i++) *done &= t->byte_id[(uint8_t)word[at + i]] != NO_ID;
  for (size_t i = 0; i < size && *done && good; i++)
    good = add_symbol(t, t->byte_id[(uint8_t)word[at + i]], at + i, 1);
  return good;
}

/* Returns the token of a character, with the prefix or the suffix that tokens there have. */
static uint32_t character_id(Tokenizer *t, View word, size_t at, size_t size)
{
  const Part *m = &t->model;
  bool before = at && m->prefix.n, after = at + size == word.n && m->suffix.n;
  if (!before && !after) return trie_find(&t->vocabulary, (Span){word.at + at, size});
  Str *s = &t->held;
  str_clear(s);
  if (before) str_span(s, m->prefix);
  str_add(s, word.at + at, size);
  if (after) str_span(s, m->suffix);
  return s->failed ? NO_ID : trie_find(&t->vocabulary, (Span){s->at, s->n});
}

/* A run of unknown characters that waits for the next known one. */
typedef struct Waiting {
  size_t at, size;
} Waiting;

static bool add_waiting(Tokenizer *t, Waiting *w)
{
  size_t size = w->size;
  w->size = 0;
  return !size || add_symbol(t, t->unk, w->at, size);
}

static ampc_status make_symbols(Tokenizer *t, View word)
{
  Waiting w = {0, 0};
  bool good = true, done = false;
  t->n_symbols = 0;
  for (size_t at = 0, size; at < word.n && good; at += size) {
    char_at(word.at + at, word.n - at, &size);
    uint32_t id = character_id(t, word, at, size);
    if (id != NO_ID) {
      good = add_waiting(t, &w) && add_symbol(t, id, at, size);
      continue;
    }
    good = add_bytes(t, word.at, at, size, &done);
    if (done) continue;
    if (t->unk == NO_ID) return no_unknown(t, (View){word.at + at, size, false});
    if (w.size && !t->model.fuse_unk) good = add_waiting(t, &w);
    if (!w.size) w.at = at;
    w.size += size;
  }
  return good && add_waiting(t, &w) ? AMPC_OK : out_of_memory(t);
}

/* Symbols of a .model: user-defined tokens, which are never merged, and characters. */
static ampc_status make_pieces(Tokenizer *t, View word)
{
  bool good = true;
  t->n_symbols = 0;
  for (size_t at = 0, size; at < word.n && good; at += size) {
    uint32_t id;
    bool frozen = (size = trie_longest(&t->user, word.at + at, word.n - at, &id)) > 0;
    if (!frozen) {
      char_at(word.at + at, word.n - at, &size);
      id = trie_find(&t->vocabulary, (Span){word.at + at, size});
    }
    good = add_symbol(t, id, at, size);
    if (good) t->symbol[t->n_symbols - 1].frozen = frozen;
  }
  return good ? AMPC_OK : out_of_memory(t);
}

/* ---- words ---- */

static Slot *find_slot(Tokenizer *t, View word)
{
  uint64_t hash = word.n;
  if (!t->cache) t->cache = calloc(SLOTS, sizeof *t->cache);
  if (word.n > SLOT_TEXT || !t->cache) return NULL;
  for (size_t i = 0; i < word.n; i++) hash = (hash ^ (uint8_t)word.at[i]) * 0x100000001b3u;
  return &t->cache[(hash ^ hash >> 32) % SLOTS];
}

/* Appends the ids of the merged symbols. */
static ampc_status put_symbols(Tokenizer *t, View word)
{
  ampc_status status = AMPC_OK;
  for (int32_t i = 0; i >= 0 && t->n_symbols && !status; i = t->symbol[i].after) {
    const Symbol *s = &t->symbol[i];
    size_t end = s->at + s->size;
    if (s->id != NO_ID) {
      status = put_id(t, s->id);
      continue;
    }
    for (; t->symbol[i].after >= 0 && t->symbol[t->symbol[i].after].id == NO_ID;
         end += t->symbol[i].size)
      i = t->symbol[i].after;
    status = put_unknown(t, (View){word.at + s->at, end - s->at, false});
  }
  return status;
}

static ampc_status merge_word(Tokenizer *t, View word)
{
  uint32_t whole = NO_ID;
  if (t->model.ignore_merges) whole = trie_find(&t->vocabulary, (Span){word.at, word.n});
  if (whole != NO_ID) return put_id(t, whole);
  if (word.n > INT32_MAX)
    return ampc_fail(AMPC_BAD_FILE, "a word has %zu bytes; the most is 2^31 - 1", word.n);
  ampc_status status = t->pieces ? make_pieces(t, word) : make_symbols(t, word);
  if (!status && !merge_all(t, word.at)) status = out_of_memory(t);
  return status ? status : put_symbols(t, word);
}

static ampc_status encode_word(Tokenizer *t, View word)
{
  Slot *slot = find_slot(t, word);
  ampc_status status = AMPC_OK;
  if (slot && slot->n_text == word.n && memcmp(slot->text, word.at, word.n) == 0) {
    for (int i = 0; i < slot->n_ids && !status; i++) status = put_id(t, slot->id[i]);
    return status;
  }
  size_t from = t->out->n;
  status = merge_word(t, word);
  size_t n = t->out->n - from;
  if (status || !slot || n > SLOT_IDS) return status;
  slot->n_text = (uint8_t)word.n;
  slot->n_ids = (uint8_t)n;
  memcpy(slot->text, word.at, word.n);
  memcpy(slot->id, t->out->at + from, n * sizeof *slot->id);
  return AMPC_OK;
}

ampc_status bpe_encode(Tokenizer *t, View text)
{
  ampc_status status = AMPC_OK;
  for (size_t i = 0, end; i < text.n && !status; i = end) {
    end = word_end(t, text, i);
    status = encode_word(t, (View){text.at + i, end - i, false});
  }
  return status;
}

/* ---- reading ---- */

static ampc_status bad_merge(const Tokenizer *t, size_t i, const char *why, Span text)
{
  char shown[SHOWN];
  return ampc_fail(AMPC_BAD_FILE, "%s: model.merges[%zu] %s%s%s", t->name, i, why,
                   text.n ? " " : "", text.n ? show_span(shown, text) : "");
}

/* Reads the two texts of a merge: ["a", "b"], or "a b". */
static bool merge_texts(const json_t *row, Span side[2])
{
  if (json_is_string(row)) {
    const char *text = json_string_value(row), *blank = strchr(text, ' ');
    size_t n = json_string_length(row);
    if (!blank || memchr(blank + 1, ' ', n - (size_t)(blank + 1 - text))) return false;
    side[0] = (Span){text, (size_t)(blank - text)};
    side[1] = (Span){blank + 1, n - side[0].n - 1};
    return true;
  }
  for (size_t i = 0; i < 2; i++) {
    const json_t *text = json_array_get(row, i);
    if (!json_is_string(text) || json_array_size(row) != 2) return false;
    side[i] = (Span){json_string_value(text), json_string_length(text)};
  }
  return true;
}

static ampc_status read_merge(Tokenizer *t, size_t i, const json_t *row)
{
  Span side[2] = {0};
  uint32_t id[2];
  if (!merge_texts(row, side)) return bad_merge(t, i, "is not two texts", (Span){0});
  for (int j = 0; j < 2; j++)
    if ((id[j] = trie_find(&t->vocabulary, side[j])) == NO_ID)
      return bad_merge(t, i, "names a token that model.vocab lacks:", side[j]);
  size_t prefix = t->model.prefix.n;
  Str *made = &t->held;
  if (side[1].n < prefix) return bad_merge(t, i, "lacks the prefix of its second text:", side[1]);
  str_clear(made);
  str_span(made, side[0]);
  str_add(made, side[1].at + prefix, side[1].n - prefix);
  if (made->failed) return out_of_memory(t);
  t->merge_ids[i] = trie_find(&t->vocabulary, (Span){made->at, made->n});
  if (t->merge_ids[i] == NO_ID)
    return bad_merge(t, i, "makes a token that model.vocab lacks:", (Span){made->at, made->n});
  return map_put(&t->merges, (uint64_t)id[0] << 32 | id[1], (uint32_t)i) ? AMPC_OK
                                                                         : out_of_memory(t);
}

ampc_status bpe_read(Tokenizer *t)
{
  const json_t *list = t->model.merges;
  size_t n = json_array_size(list);
  ampc_status status = AMPC_OK;
  if (!json_is_array(list))
    return ampc_fail(AMPC_BAD_FILE, "%s: model.merges is not a list", t->name);
  if (t->model.suffix.n || t->model.prefix.n || t->model.ignore_merges) t->cuts_at_blanks = false;
  t->merge_ids = malloc((n + 1) * sizeof *t->merge_ids);
  if (!t->merge_ids) return out_of_memory(t);
  for (size_t i = 0; i < n && !status; i++) status = read_merge(t, i, json_array_get(list, i));
  return status;
}
