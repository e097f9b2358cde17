/* Compiles a job, and finds out which method answers a request. */
#include "analysis.h"
#include "compiler/driver.h"

enum { SHOWN_ERRORS = 100 };

void analysis_open(Analysis *a, const Options *options, const char *const *uris, bool utf8)
{
  *a = (Analysis){.options = *options, .uris = uris, .utf8 = utf8, .arena = arena_create()};
  a->options.error_limit = SHOWN_ERRORS;
  a->options.for_many_jobs = true;
}

void analysis_close(Analysis *a)
{
  compile_destroy(a->c);
  arena_destroy(a->arena);
}

/* ---- compiles ---- */

/* No pass after gradient finds mistakes of the user. */
json_t *analysis_diagnostics(Analysis *a)
{
  Options options = a->options;
  options.dump_after = "gradient";
  options.keep_messages = true;
  Compile *c = compile_create(&options);
  compile_job(c);
  json_t *files = json_array();
  for (uint32_t i = 0; i < c->sources.n; i++)
    if (c->sources.at[i].file)
      json_array_append_new(files, analysis_text(a, c->sources.at[i].path));
  json_t *out = json_pack("{s:o, s:o}", "files", files, "found", diagnostics_of(a, c));
  compile_destroy(c);
  return out;
}

/* The second compile of a text stops earlier: pass gradient would rewrite the graph, and the
 * diagnostics do not wait for the records. */
static Compile *compile_for_answers(Analysis *a)
{
  Options options = a->options;
  options.dump_after = "precision";
  options.silent = options.keep_meanings = true;
  Compile *c = compile_create(&options);
  compile_job(c);
  return c;
}

/* ---- requests ---- */

static const struct {
  const char *name;
  json_t *(*answer)(Query *q);
} methods[] = {
    {"textDocument/hover", answer_hover},
    {"textDocument/definition", answer_definition},
    {"textDocument/completion", answer_completion},
    {"textDocument/inlayHint", answer_hints},
    {"textDocument/documentSymbol", answer_symbols},
    {"textDocument/formatting", answer_formatting},
};

/* Finds the source that was read from `path`, and its tree. */
static bool find_source(Query *q, const char *path)
{
  const Compile *c = q->a->c;
  const OpenText *open = source_opened(&q->a->options, path);
  for (uint32_t i = 0; i < c->sources.n && open; i++) {
    const Source *s = &c->sources.at[i];
    if (!s->file || source_opened(&q->a->options, s->path) != open) continue;
    q->source = s;
    q->ast = c->ast;
    for (uint32_t k = 0; k < c->imports.n; k++)
      if (strcmp(c->imports.at[k]->path, s->path) == 0) q->ast = c->imports.at[k]->ast;
    if (q->a->split != s) q->a->tokens = lex_source(q->a->c, s);
    q->a->split = s;
    q->tokens = q->a->tokens;
    return true;
  }
  return false;
}

/* Returns the path of an open file. It need not be UTF-8, so requests do not contain it. */
static const char *path_of(const Analysis *a, const char *uri)
{
  for (uint32_t i = 0; i < a->options.n_open; i++)
    if (strcmp(a->uris[i], uri) == 0) return a->options.open[i].path;
  return "";
}

json_t *analysis_answer(Analysis *a, const json_t *request)
{
  Query q = {.a = a, .params = json_object_get(request, "params")};
  const char *method = json_string_value(json_object_get(request, "method"));
  if (!a->c) a->c = compile_for_answers(a);
  if (!find_source(&q, path_of(a, json_string_value(json_object_get(request, "uri")))))
    return json_null();
  q.offset = query_offset(&q, json_object_get(q.params, "position"));
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
    if (strcmp(methods[i].name, method) == 0) return methods[i].answer(&q);
  return json_null();
}

/* ---- for the methods ---- */

const char *analysis_uri(const Analysis *a, const char *path)
{
  const OpenText *open = source_opened(&a->options, path);
  return open ? a->uris[open - a->options.open] : text_uri(a->arena, path);
}

json_t *analysis_location(const Analysis *a, const Compile *c, Span span)
{
  Place place = diag_place(c, span);
  if (!place.source || !place.source->file) return json_null();
  return json_pack("{s:s, s:o}", "uri", analysis_uri(a, place.source->path), "range",
                   text_range(c, span, a->utf8));
}

const Builtins *analysis_builtins(Analysis *a)
{
  if (!a->builtins.n) list_builtins(a->arena, &a->builtins);
  return &a->builtins;
}

const Builtin *analysis_builtin(Analysis *a, const char *name)
{
  const Builtins *list = analysis_builtins(a);
  for (uint32_t i = 0; i < list->n; i++)
    if (same_name(list->at[i].name, name)) return &list->at[i];
  return NULL;
}

json_t *analysis_text(const Analysis *a, const char *text)
{
  json_t *out = json_string(text);
  return out ? out : json_string(arena_shown(a->arena, text, "\n"));
}

uint32_t query_offset(const Query *q, const json_t *position)
{
  const Source *s = q->source;
  return s->base +
         text_offset(s->text, s->size, json_integer_value(json_object_get(position, "line")),
                     json_integer_value(json_object_get(position, "character")), q->a->utf8);
}
