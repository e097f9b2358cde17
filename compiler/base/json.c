/* Prints strings as JSON. */
#include "json.h"
#include <string.h>

/* Returns the length of the UTF-8 character at s; 0 if it is malformed: also one that is longer
 * than need be, or half a pair of UTF-16. `s` is NUL-terminated. */
static unsigned utf8_size(const unsigned char *s)
{
  unsigned n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  if (s[0] > 0xf4) return 0;
  for (unsigned i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  const unsigned two = (unsigned)s[0] << 8 | (n > 2 ? s[1] : 0u);
  const bool wrong = n == 3 ? two < 0xe0a0 || (two >= 0xeda0 && two < 0xee00)
                            : n == 4 && (two < 0xf090 || two > 0xf48f);
  return wrong ? 0 : n;
}

void text_add_json(Text *out, const char *s)
{
  text_add_json_bytes(out, s, strlen(s));
}

void text_add_json_bytes(Text *out, const char *s, size_t size)
{
  text_puts(out, "\"");
  for (const unsigned char *p = (const unsigned char *)s, *end = p + size; p < end;) {
    unsigned n = utf8_size(p);
    if (*p == '"' || *p == '\\')
      text_printf(out, "\\%c", *p);
    else if (*p == '\n')
      text_puts(out, "\\n");
    else if (*p < ' ' || *p == 0x7f)
      text_printf(out, "\\u%04x", *p);
    else if (n)
      text_add(out, (const char *)p, n);
    else
      text_puts(out, "\\ufffd");
    p += n ? n : 1;
  }
  text_puts(out, "\"");
}
