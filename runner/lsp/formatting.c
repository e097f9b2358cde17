/* textDocument/formatting: the layout of `amp fmt`. */
#include "analysis.h"
#include "compiler/cli/options.h"
#include "compiler/fmt/fmt.h"

/* Returns the first error as a JSON string. */
static json_t *mistake(Analysis *a, const Compile *c)
{
  uint32_t n;
  const Message *m = diag_kept(c, &n);
  while (m->severity != SEVERITY_error) m++;
  return analysis_text(a, arena_printf(a->arena, "not formatted: line %u: %s",
                                       diag_place(c, m->span).line, m->text));
}

/* Returns a list with one edit, which replaces the text; an empty list if nothing changes; a string
 * if the text has a syntax error. */
json_t *answer_formatting(Query *q)
{
  const Source *s = q->source;
  Options options = options_default();
  options.keep_messages = true;
  Compile *c = compile_create(&options);
  Text out = text_new(c->arena);
  json_t *result = NULL;
  if (!fmt_text(c, s->path, s->text, s->size, &out))
    result = mistake(q->a, c);
  else if (out.n == s->size && memcmp(out.at, s->text, s->size) == 0)
    result = json_array();
  else
    result = json_pack("[{s:o, s:o}]", "range",
                       text_range(q->a->c, (Span){s->base, s->base + s->size}, q->a->utf8),
                       "newText", json_stringn(out.at, out.n));
  compile_destroy(c);
  return result;
}
