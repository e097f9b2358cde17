/* Positions and URIs. */
#include "text.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- positions ---- */

/* Returns the size in the protocol's units of a character that begins with `byte`; 0 for a byte
 * that continues a character. */
static uint32_t units_of(unsigned char byte, bool utf8)
{
  if (utf8) return 1;
  return (byte & 0xc0) == 0x80 ? 0 : byte >= 0xf0 ? 2 : 1;
}

uint32_t text_units(const char *text, size_t size)
{
  uint32_t n = 0;
  for (size_t i = 0; i < size; i++) n += units_of((unsigned char)text[i], false);
  return n;
}

uint32_t text_offset(const char *text, uint32_t size, int64_t line, int64_t character, bool utf8)
{
  const char *end = text + size, *p = text;
  for (; line > 0; line--) {
    const char *next = memchr(p, '\n', (size_t)(end - p));
    if (!next) return size;
    p = next + 1;
  }
  const char *stop = memchr(p, '\n', (size_t)(end - p));
  if (!stop) stop = end;
  if (stop > p && stop[-1] == '\r') stop--;
  while (p < stop && (character -= units_of((unsigned char)*p, utf8)) >= 0) p++;
  return (uint32_t)(p - text);
}

static json_t *position(const Compile *c, uint32_t offset, bool utf8)
{
  Place place = diag_place(c, (Span){offset, offset});
  if (!place.source) return json_pack("{s:i, s:i}", "line", 0, "character", 0);
  uint32_t size, character = 0;
  const char *line = diag_line_text(c, &place, &size);
  for (uint32_t i = 0; i < place.column - 1 && i < size; i++)
    character += units_of((unsigned char)line[i], utf8);
  return json_pack("{s:I, s:I}", "line", (json_int_t)place.line - 1, "character",
                   (json_int_t)character);
}

json_t *text_range(const Compile *c, Span span, bool utf8)
{
  return json_pack("{s:o, s:o}", "start", position(c, span.start, utf8), "end",
                   position(c, span.end, utf8));
}

/* ---- files ---- */

const char *text_path(Arena *arena, const char *uri)
{
  static const char scheme[] = "file://";
  if (strncmp(uri, scheme, sizeof scheme - 1) != 0) return uri;
  const char *p = strchr(uri + sizeof scheme - 1, '/'); /* behind the name of a host */
  if (!p) return uri;
  Text out = text_new(arena);
  for (; *p; p++) {
    unsigned byte = (unsigned char)*p;
    if (*p == '%' && isxdigit((unsigned char)p[1]) && isxdigit((unsigned char)p[2])) {
      sscanf(p + 1, "%2x", &byte);
      p += 2;
    }
    if (!byte) return uri; /* no path contains NUL */
    text_add(&out, &(char){(char)byte}, 1);
  }
  return out.at;
}

const char *text_uri(Arena *arena, const char *path)
{
  char *whole = realpath(path, NULL);
  Text out = text_new(arena);
  text_puts(&out, "file://");
  for (const char *p = whole ? whole : path; *p; p++)
    if (isalnum((unsigned char)*p) || strchr("/-._~", *p))
      text_add(&out, p, 1);
    else
      text_printf(&out, "%%%02X", (unsigned)(unsigned char)*p);
  free(whole);
  return out.at;
}
