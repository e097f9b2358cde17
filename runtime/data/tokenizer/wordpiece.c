/* WordPiece: the longest token that a word begins with, then the longest one of the rest.
 * WordLevel: a word is a token. */
#include "parts.h"

static ampc_status put_unk(Tokenizer *t, View word)
{
  return t->unk == NO_ID ? no_unknown(t, word) : put_id(t, t->unk);
}

/* Finds the longest token that the word has at `at`. Returns its bytes. */
static size_t longest_at(const Tokenizer *t, View word, size_t at, uint32_t *id)
{
  Span prefix = at ? t->model.prefix : (Span){0};
  uint32_t node = 0;
  size_t found = 0;
  for (size_t i = 0; i < prefix.n && node != NO_ID; i++)
    node = trie_step(&t->vocabulary, node, prefix.at[i]);
  for (size_t i = at; i < word.n && node != NO_ID; i++) {
    node = trie_step(&t->vocabulary, node, word.at[i]);
    if (node == NO_ID || t->vocabulary.id[node] == NO_ID) continue;
    *id = t->vocabulary.id[node];
    found = i + 1 - at;
  }
  return found;
}

ampc_status wordpiece_encode(Tokenizer *t, View word)
{
  size_t characters = 0, from = t->out->n;
  uint32_t id;
  for (size_t i = 0; i < word.n; i++) characters += (word.at[i] & 0xc0) != 0x80;
  bool bad = (int64_t)characters > t->model.start;
  for (size_t at = 0, size; at < word.n && !bad; at += size) {
    size = longest_at(t, word, at, &id);
    bad = !size;
    if (size && put_id(t, id)) return AMPC_RUN_FAILED;
  }
  if (!bad) return AMPC_OK;
  t->out->n = from;
  return put_unk(t, word);
}

ampc_status wordlevel_encode(Tokenizer *t, View word)
{
  uint32_t id = trie_find(&t->vocabulary, (Span){word.at, word.n});
  return id == NO_ID ? put_unk(t, word) : put_id(t, id);
}
