/* After a syntax error the rest of the program is still elaborated, to find its own mistakes.
 * Errors that only follow from the unparsed text are suppressed: the syntax error explains them,
 * and the next compile reports the other mistakes. */
#include <string.h>
#include "compiler/base/names.h"
#include "diag_internal.h"

enum { MAX_WOUNDS = 1000, MAX_HEAD = 1000 /* bytes */ }; /* bytes; each error searches all wounds */

/* Returns the size of the line up to its first `=` or `(`, which contains the name that the line
 * defines: `h = relu((x)` defines h, and `def forward(x` defines forward. */
static uint32_t head_size(const char *text, uint32_t size)
{
  for (uint32_t i = 0; i < size; i++)
    if (text[i] == '=' || text[i] == '(') return i;
  return size;
}

/* Remembers a line that could not be parsed. The name that it defines will be unknown, which is no
 * separate mistake. */
void diag_wound(Compile *c, Span span)
{
  Place place = diag_place(c, span);
  if (!place.source) return;
  uint32_t size;
  const char *text = diag_line_text(c, &place, &size);
  if (c->diag->wounds.n == MAX_WOUNDS) return;
  if (size > MAX_HEAD) size = MAX_HEAD;
  vec_push(c->arena, &c->diag->wounds, (Wound){text, head_size(text, size)});
}

/* True if the head of the line contains the whole word: `fc` is not in `fc1`. */
static bool has_word(const Wound *line, const char *word, uint32_t size)
{
  for (uint32_t i = 0; i + size <= line->size; i++) {
    if (i && in_name(line->text[i - 1])) continue;
    if (memcmp(line->text + i, word, size) != 0) continue;
    if (i + size == line->size || !in_name(line->text[i + size])) return true;
  }
  return false;
}

static bool wounded(const DiagState *d, const char *word, uint32_t size)
{
  for (uint32_t i = 0; i < d->wounds.n; i++)
    if (has_word(&d->wounds.at[i], word, size)) return true;
  return false;
}

/* True for errors about names, arguments and shapes, whose cause is at their own location. */
static bool stands_alone(ErrorCode code)
{
  return (code >= E201 && code <= E205) || (code >= E301 && code < E401);
}

/* An error follows from a syntax error if its kind depends on the whole program (types, training),
 * if it is on a wounded line, or if its span contains a name that a wounded line defines. */
bool diag_is_aftermath(const Compile *c, ErrorCode code, Span span)
{
  const DiagState *d = c->diag;
  if (!d->wounds.n || code < E201) return false;
  Place place = diag_place(c, span);
  if (!place.source || !stands_alone(code)) return true;
  uint32_t ignored;
  const char *line = diag_line_text(c, &place, &ignored);
  for (uint32_t i = 0; i < d->wounds.n; i++)
    if (d->wounds.at[i].text == line) return true;
  const char *text = place.source->text + (span.start - place.source->base);
  uint32_t n = span.end - span.start;
  for (uint32_t i = 0, size; i < n; i += size) {
    for (size = 0; i + size < n && in_name(text[i + size]);) size++;
    if (size && wounded(d, text + i, size)) return true;
    if (!size) size = 1;
  }
  return false;
}
