/* Prints the `#line` after the text of an own op. From there on compilers must report lines of the
 * emitted file again. Its line number is known only when the whole text is printed. */
#include "kernels.h"
#include "compiler/base/user_text.h"
#include <string.h>

const char own_line_after[] = "#line 1 \"kernels\"";

void settle_lines(Arena *arena, Text *out, size_t from, const char *file)
{
  if (!strstr(out->at + from, own_line_after)) return;
  Text text = text_new(arena);
  uint32_t line = 1;
  for (const char *s = out->at + from, *next; *s; s = next, line++) {
    const char *end = strchrnul(s, '\n');
    size_t n = (size_t)(end - s);
    next = *end ? end + 1 : end;
    if (n == sizeof own_line_after - 1 && memcmp(s, own_line_after, n) == 0)
      text_printf(&text, "#line %u %s\n", line + 1, string_literal(arena, file));
    else
      text_add(&text, s, (size_t)(next - s));
  }
  out->n = from;
  text_add(out, text.at, text.n);
}
