/* What of a growing text is printed. A token need not be whole characters, so a tokenizer makes the
 * text of the last tokens again for each new one. */
#include "text_out.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/shown.h"

static const char unfinished[] = "\uFFFD"; /* stands for bytes that are no character yet */
enum { UNFINISHED = sizeof unfinished - 1, KEPT = 32 }; /* KEPT: tokens */

/* Sets *text to the text from token w->first on; the caller frees it. */
static ampc_status make_text(const TextOut *w, const int64_t *token, int64_t n, char **text,
                             size_t *size)
{
  int64_t first = w->tokenizer ? w->first : 0;
  *size = (size_t)(n - first);
  uint32_t *ids = w->tokenizer ? malloc((*size + 1) * sizeof *ids) : NULL;
  *text = w->tokenizer ? NULL : malloc(*size + 1);
  if (!ids && !*text) return ampc_fail(AMPC_RUN_FAILED, "out of memory for text");
  for (size_t i = 0; i < *size; i++)
    if (ids)
      ids[i] = (uint32_t)token[(size_t)first + i];
    else
      (*text)[i] = (char)token[i];
  ampc_status status =
      ids ? tokenizer_decode(w->tokenizer, ids, *size, false, text, size) : AMPC_OK;
  free(ids);
  return status;
}

/* Whether the token is a special one, which has no text, that a stop string names. */
static bool is_stop_token(const TextOut *w, int64_t token)
{
  uint32_t id = (uint32_t)token;
  bool named = false;
  for (uint32_t i = 0; i < w->n_stops && w->tokenizer; i++)
    named |= tokenizer_id(w->tokenizer, w->stop[i], strlen(w->stop[i])) == id;
  char *text = NULL;
  size_t size = 0;
  bool special = named && !tokenizer_decode(w->tokenizer, &id, 1, false, &text, &size) && size == 0;
  free(text);
  return special;
}

/* Returns where the first stop string begins in text[from..size), and sets *found. If there is
 * none, returns where the end of the text may be the beginning of one, else `size`. */
static size_t find_stop(const TextOut *w, const char *text, size_t from, size_t size, bool *found)
{
  size_t waits = size;
  for (size_t at = from; at < size; at++)
    for (uint32_t i = 0; i < w->n_stops; i++) {
      size_t length = strlen(w->stop[i]), left = size - at;
      if (memcmp(text + at, w->stop[i], length < left ? length : left) != 0) continue;
      *found = length <= left;
      if (*found) return at;
      if (at < waits) waits = at;
    }
  return waits;
}

/* Prints the text up to `size`. On a terminal, control characters are escaped so that it does not
 * interpret them, and an incomplete character waits for its remaining bytes, at most three. */
static void put_characters(TextOut *w, const char *text, size_t size, bool end)
{
  char escape[AMPC_ESCAPE_ROOM];
  for (size_t each; w->shown < size; w->shown += each) {
    const char *at = text + w->shown;
    size_t left = size - w->shown;
    unsigned char first = (unsigned char)*at;
    size_t wants = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    if (w->terminal && left < wants && !end) return;
    each = ampc_character(at, left, escape);
    if (w->terminal && *escape && first != '\n' && first != '\t')
      fputs(escape, w->to);
    else
      fwrite(at, 1, each, w->to);
  }
}

static bool is_unfinished(const char *text, size_t size)
{
  return size >= UNFINISHED && memcmp(text + size - UNFINISHED, unfinished, UNFINISHED) == 0;
}

/* Moves w->first to the last tokens, once all text is printed. Their text goes on as that of all
 * tokens does: they are some text, because a tokenizer treats the first characters differently. */
static ampc_status forget_tokens(TextOut *w, const int64_t *token, int64_t n)
{
  const int64_t before = w->first;
  char *text;
  size_t size;
  w->first = n - KEPT;
  ampc_status status = make_text(w, token, n, &text, &size);
  if (status) return status;
  if (size && !is_unfinished(text, size))
    w->shown = size, w->generated = 0;
  else
    w->first = before;
  free(text);
  return AMPC_OK;
}

static ampc_status put_text(TextOut *w, const int64_t *token, int64_t n, bool end)
{
  char *text;
  size_t size;
  ampc_status status = make_text(w, token, n, &text, &size);
  if (status) return status;
  bool special = w->begun && is_stop_token(w, token[n - 1]), found = false;
  end |= special;
  const size_t all = size;
  while (w->tokenizer && !end && is_unfinished(text, size)) size -= UNFINISHED;
  if (!w->begun) w->generated = size;
  size_t from = w->generated > w->shown ? w->generated : w->shown;
  size_t decided = find_stop(w, text, from, size, &found);
  w->stopped = special || found;
  put_characters(w, text, end && !found ? size : decided, end || found);
  free(text);
  const bool forget = w->tokenizer && w->shown == all && n - w->first >= (int64_t)2 * KEPT;
  return forget ? forget_tokens(w, token, n) : AMPC_OK;
}

ampc_status text_out_put(TextOut *w, const int64_t *token, int64_t n, bool end)
{
  ampc_status status = w->numbers ? AMPC_OK : put_text(w, token, n, end);
  if (status) return status;
  for (; w->numbers && w->shown < (size_t)n; w->shown++)
    fprintf(w->to, "%s%lld", w->shown ? " " : "", (long long)token[w->shown]);
  w->begun = true;
  if ((end || w->stopped) && w->line) putc('\n', w->to);
  if (fflush(w->to) == 0 && !ferror(w->to)) return AMPC_OK;
  return ampc_fail(AMPC_RUN_FAILED, "the text cannot be written: %s", strerror(errno));
}
