/* Reads a .model of sentencepiece. It is a message of protobuf; few fields matter, so this reads
 * the wire format itself: protobuf-c would need the definition of the message, which Debian lacks.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "parts.h"

typedef struct Wire { /* a message, and the field that was read last */
  const uint8_t *at, *end;
  uint64_t number, value; /* of the field */
  Span bytes;             /* of a field with a length */
  bool bad;
} Wire;

static uint64_t wire_varint(Wire *w)
{
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
    uint8_t byte = *w->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return value;
  }
  w->bad = true;
  return 0;
}

/* Reads the next field. False at the end, or if the message is damaged. */
static bool wire_next(Wire *w)
{
  if (w->at == w->end || w->bad) return false;
  uint64_t key = wire_varint(w), size = 0;
  w->number = key >> 3;
  w->value = 0;
  switch (key & 7) {
  case 0:
    w->value = wire_varint(w);
    return !w->bad;
  case 1:
    size = 8;
    break;
  case 2:
    size = wire_varint(w);
    break;
  case 5:
    size = 4;
    break;
  default:
    w->bad = true;
  }
  if (w->bad || size > (uint64_t)(w->end - w->at)) {
    w->bad = true;
    return false;
  }
  w->bytes = (Span){(const char *)w->at, (size_t)size};
  if ((key & 7) != 2) memcpy(&w->value, w->at, size);
  w->at += size;
  return true;
}

static Wire wire_of(Span bytes)
{
  return (Wire){.at = (const uint8_t *)bytes.at, .end = (const uint8_t *)bytes.at + bytes.n};
}

static ampc_status refuse_model(const Tokenizer *t, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE, "%s: %s", t->name, why);
}

static ampc_status damaged(const Tokenizer *t)
{
  return refuse_model(t, "is neither a tokenizer.json nor a whole .model of sentencepiece");
}

/* ---- the parts of the message ---- */

/* Why a piece cannot be used; NULL: it can. */
static const char *check_piece(const Tokenizer *t, Span text, float score, uint64_t type)
{
  for (size_t i = 0; i < text.n;) {
    int size = utf8_step(text.at + i, text.n - i);
    if (size < 0) return "a piece is not UTF-8";
    i += (size_t)size;
  }
  return !text.n                                    ? "a piece is empty"
         : !isfinite(score)                         ? "the score of a piece is not finite"
         : type < PIECE_normal || type > PIECE_byte ? "the type of a piece is not known"
         : type == PIECE_unused                     ? "pieces of the type UNUSED are not known"
         : trie_find(&t->vocabulary, text) != NO_ID ? "a piece occurs twice"
                                                    : NULL;
}

static ampc_status read_piece(Tokenizer *t, Span message)
{
  Wire w = wire_of(message);
  Span text = {"", 0};
  float score = 0;
  uint64_t type = PIECE_normal;
  uint32_t id = t->n_tokens;
  while (wire_next(&w)) {
    if (w.number == 1) text = w.bytes;
    if (w.number == 2) memcpy(&score, &w.value, sizeof score);
    if (w.number == 3) type = w.value;
  }
  const char *why = w.bad ? NULL : check_piece(t, text, score, type);
  if (w.bad || why) return why ? refuse_model(t, why) : damaged(t);
  ampc_status status = token_set(t, "pieces", id, text, false);
  if (status) return status;
  t->token[id].piece = (uint8_t)type;
  t->token[id].score = score;
  if (type == PIECE_unknown) t->unk = id;
  return type != PIECE_user || trie_add(&t->user, text, id) ? AMPC_OK : out_of_memory(t);
}

static ampc_status read_trainer(Tokenizer *t, Span message)
{
  static const PartKind kinds[] = {{"unigram", .encode = unigram_encode},
                                   {"bpe", .encode = bpe_encode}};
  Wire w = wire_of(message);
  while (wire_next(&w)) {
    if (w.number == 3 && w.value != 1 && w.value != 2)
      return refuse_model(t, "is neither of the type unigram nor bpe");
    if (w.number == 3) t->model.kind = &kinds[w.value - 1];
    if (w.number == 24 && w.value)
      return refuse_model(t, "treat_whitespace_as_suffix is not known");
    if (w.number == 35) t->model.byte_fallback = w.value;
    if (w.number == 44) t->unk_surface = w.bytes;
  }
  if (!t->model.kind) t->model.kind = &kinds[0];
  return w.bad ? damaged(t) : AMPC_OK;
}

static ampc_status read_normalizer(Tokenizer *t, Span message)
{
  Wire w = wire_of(message);
  while (wire_next(&w)) {
    if (w.number == 2) {
      char *copy = malloc(w.bytes.n + 1);
      if (!copy) return out_of_memory(t);
      memcpy(copy, w.bytes.at, w.bytes.n);
      free(t->normalize.at[0].map.bytes);
      if (!charsmap_read(&t->normalize.at[0].map, copy, w.bytes.n))
        return refuse_model(t, "precompiled_charsmap is damaged");
    }
    if (w.number == 3) t->dummy_prefix = w.value;
    if (w.number == 4) t->trim_blanks = w.value;
    if (w.number == 5 && !w.value)
      return refuse_model(t, "escape_whitespaces = false is not known");
  }
  return w.bad ? damaged(t) : AMPC_OK;
}

static ampc_status read_denormalizer(const Tokenizer *t, Span message)
{
  Wire w = wire_of(message);
  while (wire_next(&w))
    if (w.number == 2 && w.bytes.n) return refuse_model(t, "denormalizer_spec is not known");
  return w.bad ? damaged(t) : AMPC_OK;
}

/* ---- scores ---- */

static int by_score(const void *a, const void *b, void *tokens)
{
  double x = ((Token *)tokens)[*(const uint32_t *)a].score;
  double y = ((Token *)tokens)[*(const uint32_t *)b].score;
  return (x < y) - (x > y);
}

/* Numbers the scores from the highest down; equal ones have equal numbers. */
static ampc_status rank_pieces(Tokenizer *t)
{
  uint32_t *order = malloc((t->n_tokens + 1) * sizeof *order);
  t->ranks = malloc((t->n_tokens + 1) * sizeof *t->ranks);
  if (!order || !t->ranks) {
    free(order);
    return out_of_memory(t);
  }
  for (uint32_t i = 0; i < t->n_tokens; i++) order[i] = i;
  qsort_r(order, t->n_tokens, sizeof *order, by_score, t->token);
  for (uint32_t i = 0, rank = 0; i < t->n_tokens; i++) {
    if (i) rank += t->token[order[i]].score != t->token[order[i - 1]].score;
    t->ranks[order[i]] = rank;
  }
  free(order);
  return AMPC_OK;
}

/* Finds what the models need, and takes the pieces that no text gives out of the vocabulary. */
static ampc_status finish_pieces(Tokenizer *t)
{
  float least = INFINITY, most = 0x1p-126f;
  if (t->unk == NO_ID) return refuse_model(t, "has no piece of the type UNKNOWN");
  ampc_status status = vocabulary_finish(t);
  for (uint32_t i = 0; i < t->n_tokens && !status; i++) {
    const Token *token = &t->token[i];
    bool found = token->piece == PIECE_normal || token->piece == PIECE_user;
    if (token->piece == PIECE_normal) {
      least = fminf(least, (float)token->score);
      most = fmaxf(most, (float)token->score);
    }
    if (!found && !trie_add(&t->vocabulary, token->text, NO_ID)) status = out_of_memory(t);
  }
  t->unk_score = (float)(least - 10);
  t->user_score = most;
  return status ? status : rank_pieces(t);
}

ampc_status pieces_read(Tokenizer *t, const char *bytes, size_t n)
{
  t->bytes = malloc(n + 1);
  t->pieces = t->dummy_prefix = t->trim_blanks = true;
  t->unk_surface = (Span){" \u2047 ", 5};
  if (!t->bytes || !grow(&t->normalize.at, &t->normalize.cap, 1, sizeof(Part)))
    return out_of_memory(t);
  t->normalize.at[t->normalize.n++] = (Part){0};
  memcpy(t->bytes, bytes, n);
  Wire w = wire_of((Span){t->bytes, n});
  ampc_status status = AMPC_OK;
  while (!status && wire_next(&w)) {
    if (w.number == 1) status = read_piece(t, w.bytes);
    if (w.number == 2) status = read_trainer(t, w.bytes);
    if (w.number == 3) status = read_normalizer(t, w.bytes);
    if (w.number == 5) status = read_denormalizer(t, w.bytes);
  }
  if (status) return status;
  if (w.bad || !t->n_tokens || !t->model.kind) return damaged(t);
  return finish_pieces(t);
}
