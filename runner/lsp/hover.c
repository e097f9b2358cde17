/* textDocument/hover: the values of a name, its declaration, and what the reference says. */
#include "context.h"
#include "names.h"
#include "compiler/help/help.h"

enum { MOST_VALUES = 4 };

/* Prints the values of the name: types of tensors with the reason, numbers, modules. */
static void put_values(const Query *q, const char *name, Span span, Text *out)
{
  DescribedVec values = {0};
  meanings_at(q->a->c, span, &values);
  for (uint32_t i = 0; i < values.n && i < MOST_VALUES; i++) {
    const Described *d = &values.at[i];
    text_printf(out, "```amp\n%s%s: %s\n```\n%s", name, d->result ? "(..)" : "", d->text, d->why);
    if (d->layer) text_printf(out, "%sin `%s`", *d->why ? "; " : "", d->layer);
    if (d->tensor && d->count > 1) text_printf(out, "; %u such values", d->count);
    text_puts(out, "\n\n");
  }
  if (values.n > MOST_VALUES) text_printf(out, "and %u more\n\n", values.n - MOST_VALUES);
}

/* Prints the text of a declaration up to its braces or the end of its line. */
static void put_header(const Query *q, const char *before, Span from, Text *out)
{
  const Source *s = diag_place(q->a->c, from).source;
  const char *p = s->text + (from.start - s->base), *end = p;
  for (int depth = 0; *end && *end != '{' && *end != '#' && (depth > 0 || *end != '\n'); end++)
    depth += (*end == '(' || *end == '[') - (*end == ')' || *end == ']');
  while (end > p && (end[-1] == ' ' || end[-1] == '\r')) end--;
  text_printf(out, "```amp\n%s%.*s\n```\n", before, (int)(end - p), p);
}

/* Prints what the reference of the language says. It begins with the signature, and for an op with
 * facts in parentheses. */
static void put_help(const char *name, Text *out)
{
  Text help = text_new(out->arena);
  if (!help_on(name, &help)) return;
  const char *rest = help.at;
  while (*rest && strncmp(rest, "\n\n", 2) != 0 && strncmp(rest, "\n(", 2) != 0) rest++;
  text_printf(out, "```amp\n%.*s\n```\n%s\n", (int)(rest - help.at), help.at,
              *rest ? rest + 1 : "");
}

/* Prints the declaration of a name of the files; else what the reference says. */
static void put_meaning(const Query *q, const Token *name, Text *out)
{
  const VisibleName *n = names_meant(q, name);
  if (!n) put_help(name->as.name, out);
  if (n && n->decl) put_header(q, "", n->decl->span, out);
  if (n && n->method) put_header(q, "def ", n->method->name.span, out);
}

json_t *answer_hover(Query *q)
{
  const Context at = context_at(q);
  if (!at.name) return json_null();
  Text out = text_new(q->a->arena);
  if (!at.argument) put_values(q, at.name->as.name, at.name->span, &out);
  const Token *shown = at.argument ? at.callee : at.name; /* arguments have no entries */
  if (shown) put_meaning(q, shown, &out);
  if (!out.n) return json_null();
  return json_pack("{s:{s:s, s:o}, s:o}", "contents", "kind", "markdown", "value",
                   analysis_text(q->a, out.at), "range",
                   text_range(q->a->c, at.name->span, q->a->utf8));
}
