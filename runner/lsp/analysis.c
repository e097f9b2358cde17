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
  compile_destroy(a->found);
  arena_destroy(a->arena);
}

/* ---- compiles ---- */

/* No pass after gradient finds mistakes of the user. */
json_t *analysis_diagnostics(Analysis *a)
{
  Options options = a->options;
  options.dump_after = "gradient";
  options.keep_messages = true;
  Compile *c = a->found = compile_create(&options);
  compile_job(c);
  json_t *files = json_array();
  for (uint32_t i = 0; i < c->sources.n; i++)
    if (c->sources.at[i].file)
      json_array_append_new(files, analysis_text(a, c->sources.at[i].path));
  return json_pack("{s:o, s:o}", "files", files, "found", diagnostics_of(a, c));
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
    {"textDocument/codeAction", answer_actions},
    {"textDocument/signatureHelp", answer_signature},
    {"textDocument/references", answer_references},
    {"declared", answer_declared}, /* of the server */
    {"textDocument/documentHighlight", answer_highlight},
    {"textDocument/prepareRename", answer_prepare},
    {"textDocument/rename", answer_rename},
};

const Source *analysis_source(const Analysis *a, const Compile *c, const char *uri)
{
  for (uint32_t i = 0; i < c->sources.n; i++)
    if (c->sources.at[i].file && strcmp(analysis_uri(a, c->sources.at[i].path), uri) == 0)
      return &c->sources.at[i];
  return NULL;
}

bool query_look(Query *q, const Source *s)
{
  const Compile *c = q->a->c;
  q->source = s;
  q->ast = s && s->file && strcmp(s->path, c->options.input) == 0 ? c->ast : NULL;
  for (uint32_t k = 0; s && k < c->imports.n; k++)
    if (strcmp(c->imports.at[k]->path, s->path) == 0) q->ast = c->imports.at[k]->ast;
  if (!q->ast) return false;
  if (q->a->split != s) q->a->tokens = lex_source(q->a->c, s);
  q->a->split = s;
  q->tokens = q->a->tokens;
  return true;
}

json_t *analysis_answer(Analysis *a, const json_t *request)
{
  Query q = {.a = a, .params = json_object_get(request, "params")};
  const char *method = json_string_value(json_object_get(request, "method"));
  if (!a->c) a->c = compile_for_answers(a);
  const char *uri = json_string_value(json_object_get(request, "uri"));
  if (!query_look(&q, analysis_source(a, a->c, uri))) return json_null();
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
