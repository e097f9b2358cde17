/* --error-format=json: one object a line, for editors and other programs. An error stays open until
 * the next one, because its notes and helps belong into it. */
#include "diag_internal.h"
#include <stdio.h>

static const char *const severity_text[] = {"error", "warning", "note", "help"};

/* Length of the well-formed UTF-8 character at s (which ends in a zero), 0 if there is none. */
static unsigned utf8_size(const unsigned char *s)
{
  unsigned n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  if (s[0] > 0xf4) return 0;
  for (unsigned i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return n;
}

/* As JSON wants it: control characters escaped, bytes that are no UTF-8 replaced. */
static void add_string(Text *out, const char *s)
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

/* Lines and columns count from 1, columns in bytes, as in the text form. */
static void add_place(Compile *c, Span span, Text *out)
{
  Place from = diag_place(c, span);
  if (!from.source) return;
  Place to = diag_place(c, (Span){span.end, span.end});
  text_puts(out, ", \"file\": ");
  add_string(out, from.source->path);
  text_printf(out, ", \"line\": %u, \"column\": %u, \"end_line\": %u, \"end_column\": %u",
              from.line, from.column, to.line, to.column);
}

/* Closes the object that is open and writes it. */
void diag_finish_json(Compile *c)
{
  Text *out = &c->diag->json;
  if (!out->n) return;
  text_puts(out, "]}\n");
  fwrite(out->at, 1, out->n, stderr);
  out->n = 0;
}

/* Starts an object for an error or warning; a note or help goes into the one that is open. */
void diag_print_json(Compile *c, const Message *m)
{
  DiagState *d = c->diag;
  if (!d->json.arena) text_init(&d->json, c->arena);
  if (m->code) {
    diag_finish_json(c);
    d->json_notes = false;
  } else if (d->json_notes) {
    text_puts(&d->json, ", ");
  }
  text_printf(&d->json, "{\"severity\": \"%s\"", severity_text[m->severity]);
  if (m->code) text_printf(&d->json, ", \"code\": \"%s\"", m->code);
  add_place(c, m->span, &d->json);
  text_puts(&d->json, ", \"message\": ");
  add_string(&d->json, m->text);
  if (m->code) {
    text_puts(&d->json, ", \"notes\": [");
  } else {
    text_puts(&d->json, "}");
    d->json_notes = true;
  }
}
