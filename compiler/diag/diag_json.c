/* --error-format=json: one object a line, for editors and other programs. An error stays open until
 * the next one, because it contains its notes and helps. */
#include "diag_internal.h"
#include <stdio.h>
#include "compiler/base/json.h"

static const char *const severity_text[] = {"error", "warning", "note", "help"};

/* Adds a location. Lines and columns count from 1, and columns count bytes, as in text messages. */
static void add_place(Compile *c, Span span, Text *out)
{
  Place from = diag_place(c, span);
  if (!from.source) return;
  Place to = diag_place(c, (Span){span.end, span.end});
  text_puts(out, ", \"file\": ");
  text_add_json(out, from.source->path);
  text_printf(out, ", \"line\": %u, \"column\": %u, \"end_line\": %u, \"end_column\": %u",
              from.line, from.column, to.line, to.column);
}

/* Closes and prints the open object. */
void diag_finish_json(Compile *c)
{
  Text *out = &c->diag->json;
  if (!out->n) return;
  text_puts(out, "]}\n");
  fwrite(out->at, 1, out->n, stderr);
  out->n = 0;
}

/* Starts an object for an error or warning. A note or help is added to the open object. */
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
  text_add_json(&d->json, m->text);
  if (m->code) {
    text_puts(&d->json, ", \"notes\": [");
  } else {
    text_puts(&d->json, "}");
    d->json_notes = true;
  }
}
