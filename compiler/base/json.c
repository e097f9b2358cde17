/* Prints strings as JSON. */
#include "json.h"

/* Returns the length of the UTF-8 character at s; 0 if it is malformed. `s` is NUL-terminated. */
static unsigned utf8_size(const unsigned char *s)
{
  unsigned n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  if (s[0] > 0xf4) return 0;
  for (unsigned i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return n;
}

void text_add_json(Text *out, const char *s)
{
  text_puts(out, "\"");
  for (const unsigned char *p = (const unsigned char *)s; *p;) {
    unsigned n = utf8_size(p);
    if (*p == '"' || *p == '\\')
      text_printf(out, "\\%c", *p);
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
