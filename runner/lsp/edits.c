/* Makes edited texts. */
#include "edits.h"
#include "compiler/driver.h"

static const Source *source_of(const Compile *c, const Edit *e)
{
  return diag_place(c, e->span).source;
}

json_t *edits_json(const Analysis *a, const Compile *c, const Edits *edits)
{
  json_t *changes = json_object();
  for (uint32_t i = 0; i < edits->n; i++) {
    const char *uri = analysis_uri(a, source_of(c, &edits->at[i])->path);
    json_t *list = json_object_get(changes, uri);
    if (!list) json_object_set_new(changes, uri, list = json_array());
    json_array_append_new(list, json_pack("{s:o, s:o}", "range",
                                          text_range(c, edits->at[i].span, a->utf8), "newText",
                                          analysis_text(a, edits->at[i].text)));
  }
  return json_pack("{s:o}", "changes", changes);
}

/* Returns the text of a source with its edits, which begin at `first`. Sets *end to the index
 * behind them. */
static OpenText edited_text(const Analysis *a, const Compile *c, const Edits *edits, uint32_t first,
                            uint32_t *end)
{
  const Source *s = source_of(c, &edits->at[first]);
  Text out = text_new(a->arena);
  uint32_t done = 0, i = first;
  for (; i < edits->n && source_of(c, &edits->at[i]) == s; i++) {
    const Edit *e = &edits->at[i];
    text_add(&out, s->text + done, e->span.start - s->base - done);
    text_puts(&out, e->text);
    done = e->span.end - s->base;
  }
  text_add(&out, s->text + done, s->size - done);
  *end = i;
  return (OpenText){s->path, out.at, (uint32_t)out.n};
}

/* An edited text hides the open or stored one, as the first text of a path counts. */
Compile *edits_compile(const Analysis *a, const Compile *c, const Edits *edits, Options options)
{
  VEC(OpenText) texts = {0};
  for (uint32_t i = 0; i < edits->n;) {
    OpenText text = edited_text(a, c, edits, i, &i);
    vec_push(a->arena, &texts, text);
  }
  for (uint32_t i = 0; i < options.n_open; i++) vec_push(a->arena, &texts, options.open[i]);
  options.open = texts.at;
  options.n_open = texts.n;
  Compile *edited = compile_create(&options);
  compile_job(edited);
  return edited;
}
