/* Unigram: the tokens of a word with the highest sum of scores. */
#include <math.h>
#include "parts.h"

/* Notes a way to `to` if it is better than the best one. */
static void offer(const Tokenizer *t, size_t to, double score, uint32_t id, size_t from)
{
  Best *b = &t->best[to];
  if (t->pieces) score = (float)score; /* sentencepiece adds floats */
  if (b->from == NO_ID || score > b->score) *b = (Best){score, id, (uint32_t)from};
}

static double score_of(const Tokenizer *t, uint32_t id, size_t size)
{
  if (t->token[id].piece == PIECE_user) return (float)size * t->user_score - 0.1;
  return t->token[id].score;
}

static void find_ways(Tokenizer *t, View word, double before)
{
  for (size_t i = 0; i <= word.n; i++) t->best[i] = (Best){0, 0, NO_ID};
  t->best[0].score = before;
  for (size_t at = 0, size; at < word.n; at += size) {
    double score = t->best[at].score;
    bool single = false;
    uint32_t node = 0;
    char_at(word.at + at, word.n - at, &size);
    for (size_t i = at; i < word.n; i++) {
      if ((node = trie_step(&t->vocabulary, node, word.at[i])) == NO_ID) break;
      uint32_t id = t->vocabulary.id[node];
      if (id == NO_ID) continue;
      offer(t, i + 1, score + score_of(t, id, i + 1 - at), id, at);
      single |= i + 1 - at == size;
    }
    if (!single) offer(t, at + size, t->unk_score + score, t->unk, at);
  }
}

/* Appends the ids of the best way. The way is turned round in the entries that it has passed. */
static ampc_status put_way(Tokenizer *t, View word)
{
  ampc_status status = AMPC_OK;
  size_t end = word.n, next = word.n;
  while (end) { /* Best.from of each place on the way becomes the next place */
    size_t from = t->best[end].from;
    t->best[end].from = (uint32_t)next;
    next = end;
    end = from;
  }
  for (size_t at = 0, stop; at < word.n && !status; at = stop) {
    stop = next;
    next = t->best[stop].from;
    uint32_t id = t->best[stop].id;
    if (id != t->unk) {
      status = put_id(t, id);
      continue;
    }
    for (; stop < word.n && t->best[next].id == t->unk; next = t->best[stop].from) stop = next;
    View unknown = {word.at + at, stop - at, false};
    id = t->pieces ? NO_ID : trie_find(&t->vocabulary, (Span){unknown.at, unknown.n});
    status = id == NO_ID ? put_unknown(t, unknown) : put_id(t, id);
  }
  return status;
}

ampc_status unigram_encode(Tokenizer *t, View text)
{
  ampc_status status = AMPC_OK;
  double before = 0; /* sums round, so each word begins with the score of those before it */
  for (size_t i = 0, end; i < text.n && !status; i = end) {
    end = word_end(t, text, i);
    View word = {text.at + i, end - i, false};
    if (word.n >= NO_ID || !grow(&t->best, &t->best_cap, word.n + 1, sizeof *t->best))
      return out_of_memory(t);
    find_ways(t, word, before);
    before = t->best[word.n].score;
    status = put_way(t, word);
  }
  return status;
}

ampc_status unigram_read(Tokenizer *t)
{
  size_t i;
  json_t *row;
  double least = INFINITY;
  ampc_status status = json_is_array(t->model.vocab)
                           ? tokens_reserve(t, json_array_size(t->model.vocab))
                           : ampc_fail(AMPC_BAD_FILE, "%s: model.vocab is not a list", t->name);
  if (status) return status;
  json_array_foreach(t->model.vocab, i, row)
  {
    const json_t *text = json_array_get(row, 0), *score = json_array_get(row, 1);
    if (!json_is_string(text) || !json_is_number(score) || json_array_size(row) != 2)
      return ampc_fail(AMPC_BAD_FILE, "%s: model.vocab[%zu] is not [text, score]", t->name, i);
    Span span = {json_string_value(text), json_string_length(text)};
    if ((status = token_set(t, "model.vocab", (int64_t)i, span, false))) return status;
    t->token[i].score = json_number_value(score);
    if (t->token[i].score < least) least = t->token[i].score;
  }
  t->unk_score = least - 10;
  const json_t *unk = t->model.unk_id;
  if (!unk || json_is_null(unk)) return AMPC_OK;
  if (!json_is_integer(unk) || json_integer_value(unk) < 0 || json_integer_value(unk) >= (int64_t)i)
    return ampc_fail(AMPC_BAD_FILE, "%s: model.unk_id is not an id of model.vocab", t->name);
  t->unk = (uint32_t)json_integer_value(unk);
  return AMPC_OK;
}
