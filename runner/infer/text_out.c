/* What of a growing text is printed. */
#include "text_out.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/shown.h"

/* Prints the new end of the text of all tokens. Bytes of a character that is not whole yet, at the
 * end, wait. */
static ampc_status put_decoded(TextOut *w, const int64_t *token, int64_t n, bool end)
{
  n -= w->first;
  uint32_t *ids = malloc((size_t)(n + 1) * sizeof *ids);
  char *text = NULL, escape[AMPC_ESCAPE_ROOM];
  size_t size = 0;
  for (int64_t i = 0; i < n && ids; i++) ids[i] = (uint32_t)token[w->first + i];
  ampc_status status = ids ? tokenizer_decode(w->tokenizer, ids, (size_t)n, false, &text, &size)
                           : ampc_fail(AMPC_RUN_FAILED, "out of memory for text");
  free(ids);
  bool waits = !status && !end && size >= 3 && memcmp(text + size - 3, "\uFFFD", 3) == 0;
  for (size_t i = (size_t)w->shown, each; !status && !waits && i < size; i += each) {
    each = ampc_character(text + i, size - i, escape);
    bool shown = w->terminal && *escape && text[i] != '\n' && text[i] != '\t';
    if (shown)
      fputs(escape, w->to);
    else
      fwrite(text + i, 1, each, w->to);
  }
  if (!status && !waits && (int64_t)size > w->shown) w->shown = (int64_t)size;
  free(text);
  return status;
}

/* Prints whole UTF-8 characters, with control characters escaped so that the terminal does not
 * interpret them. An incomplete character waits for its remaining bytes, at most three. */
static void put_shown(TextOut *w, const int64_t *token, int64_t n, bool end)
{
  while (w->shown < n) {
    char bytes[5] = "", escape[AMPC_ESCAPE_ROOM];
    size_t left = 0;
    while (left < 4 && w->shown + (int64_t)left < n) {
      bytes[left] = (char)token[w->shown + (int64_t)left];
      left++;
    }
    unsigned char first = (unsigned char)bytes[0];
    size_t wants = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    if (left < wants && !end) return;
    size_t size = ampc_character(bytes, left, escape);
    bool keep = first == '\n' || first == '\t';
    if (*escape && !keep)
      fputs(escape, w->to);
    else
      fwrite(bytes, 1, size, w->to);
    w->shown += (int64_t)size;
  }
}

ampc_status text_out_put(TextOut *w, const int64_t *token, int64_t n, bool end)
{
  if (w->tokenizer) {
    ampc_status status = put_decoded(w, token, n, end);
    if (status) return status;
  } else if (!w->numbers && w->terminal) {
    put_shown(w, token, n, end);
  } else {
    for (; w->shown < n; w->shown++)
      if (w->numbers)
        fprintf(w->to, "%s%lld", w->shown ? " " : "", (long long)token[w->shown]);
      else
        putc((int)token[w->shown], w->to);
  }
  if (end && w->line) putc('\n', w->to);
  if (fflush(w->to) == 0 && !ferror(w->to)) return AMPC_OK;
  return ampc_fail(AMPC_RUN_FAILED, "the text cannot be written: %s", strerror(errno));
}
