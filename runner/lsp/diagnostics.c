/* The messages of a compile as diagnostics of the protocol. */
#include "analysis.h"
#include "compiler/diag/diag.h"

/* Adds a note or a help to the message that it belongs to, as text; a note with a place also as
 * related information, which editors make a link. */
static void add_note(const Analysis *a, const Compile *c, const Message *m, Text *text,
                     json_t *related)
{
  Place place = diag_place(c, m->span);
  bool placed = place.source && place.source->file;
  text_printf(text, "\n%s", m->severity == SEVERITY_help ? "help: " : "note: ");
  if (placed) text_printf(text, "%s:%u: ", file_name(place.source->shown), place.line);
  text_puts(text, m->text);
  if (placed)
    json_array_append_new(related,
                          json_pack("{s:o, s:o}", "location", analysis_location(a, c, m->span),
                                    "message", analysis_text(a, m->text)));
}

/* Makes a diagnostic of a message and the `n` notes and helps after it. */
static json_t *diagnostic(const Analysis *a, const Compile *c, const Message *m, uint32_t n)
{
  Text text = text_new(a->arena);
  const Source *source = diag_place(c, m->span).source;
  bool option = source && !source->file; /* text of -D or --set */
  if (option) text_printf(&text, "%s: ", source->shown);
  text_puts(&text, m->text);
  json_t *related = json_array();
  for (uint32_t i = 1; i <= n; i++) add_note(a, c, m + i, &text, related);
  return json_pack("{s:o, s:i, s:s, s:s, s:o, s:o}", "range",
                   text_range(c, option ? (Span){0, 0} : m->span, a->utf8), "severity",
                   m->severity == SEVERITY_error ? 1 : 2, "code", m->code, "source", "ampc",
                   "message", analysis_text(a, text.at), "relatedInformation", related);
}

/* Returns {uri: [diagnostic]}. A message without a place is at the start of the job. */
json_t *diagnostics_of(const Analysis *a, Compile *c)
{
  uint32_t n;
  const Message *m = diag_kept(c, &n);
  json_t *out = json_object();
  for (uint32_t i = 0, notes; i < n; i += 1 + notes) {
    for (notes = 0; i + 1 + notes < n && !m[i + 1 + notes].code;) notes++;
    Place place = diag_place(c, m[i].span);
    bool placed = place.source && place.source->file;
    const char *uri = analysis_uri(a, placed ? place.source->path : a->options.input);
    json_t *list = json_object_get(out, uri);
    if (!list) json_object_set_new(out, uri, list = json_array());
    json_array_append_new(list, diagnostic(a, c, &m[i], notes));
  }
  return out;
}
