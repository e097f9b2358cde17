/* textDocument/signatureHelp: the function or layer that is called around a place, and which of its
 * parameters is being written. */
#include "names.h"
#include "compiler/help/help.h"
#include "compiler/syntax/lex_words.h"
#include <ctype.h>

typedef struct Called {
  const Token *name; /* NULL: the place is in no call */
  uint32_t commas;   /* between the bracket and the place */
  const Token *key;  /* of the argument at the place; NULL: it has none */
} Called;

/* Finds the innermost call around the place. A list in its arguments belongs to it. */
static Called called_at(const Query *q)
{
  Called at = {NULL};
  int depth = 0;
  const Token *t = q->tokens.at + q->tokens.n - 1;
  while (t > q->tokens.at && t->span.start >= q->offset) t--;
  for (; t > q->tokens.at; t--) {
    if (kind_closes(t->kind)) depth++;
    if (!depth && ONE_OF(t->kind, '{', RAW_SEMICOLON)) break;
    if (!depth && !at.commas && t->kind == TOK_NAME && t[1].kind == '=') at.key = t;
    if (!depth && t->kind == ',') at.commas++;
    if (!kind_opens(t->kind) || depth-- > 0) continue;
    depth = 0;
    at.name = t->kind == '(' && t[-1].kind == TOK_NAME ? t - 1 : NULL;
    if (at.name) break;
    at = (Called){NULL};
  }
  return at.name ? at : (Called){NULL};
}

/* Adds the name and its parameters in parentheses, of which the text may have none. Each run of
 * white space becomes a space. Returns what follows. */
static const char *add_signature(const char *text, Text *out)
{
  size_t n = name_size(text);
  text_add(out, text, n);
  int depth = 0;
  const char *p = text + n;
  for (; *p && (depth || *p == '('); p++) {
    if (!isspace((unsigned char)*p))
      text_add(out, p, 1);
    else if (!isspace((unsigned char)out->at[out->n - 1]))
      text_puts(out, " ");
    depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
    if (!depth) return p + 1;
  }
  text_puts(out, "()");
  return p;
}

/* Adds the signature of a name. Returns what the reference says about it; "": nothing. */
static const char *describe(const Query *q, const Token *name, Text *label)
{
  const VisibleName *n = names_meant(q, name);
  if (!n) n = names_found(q, name->as.name); /* x.f(a) is f(x, a) */
  const VisibleName *f = names_called(q, n);
  Text help = text_new(q->a->arena);
  if (f) {
    const Source *s = diag_place(q->a->c, f->span).source;
    add_signature(s->text + (f->span.start - s->base), label);
  }
  if (n || !help_on(name->as.name, &help)) return "";
  const char *rest = add_signature(help.at, label), *says = strstr(rest, "\n\n");
  if (!says) return "";
  const char *end = strstr(says + 2, "\n\n");
  return arena_strndup(q->a->arena, says + 2, end ? (size_t)(end - says) - 2 : strlen(says + 2));
}

/* Lists the parameters of a signature as ranges in it. Sets *active to the index of that with the
 * name, or else with the number; to their count if there is none. */
static json_t *parameters(const char *label, const char *name, uint32_t number, uint32_t *active)
{
  json_t *out = json_array();
  const char *p = strchr(label, '(') + 1, *from = p;
  for (int depth = 1; depth; p++) {
    depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
    if (depth > 1 || (depth && *p != ',')) continue;
    bool many = *from == '*' || strncmp(from, "..", 2) == 0;
    if (name ? is_name(from, name_size(from), name) : many && json_array_size(out) < number)
      number = (uint32_t)json_array_size(out);
    if (p > from)
      json_array_append_new(out, json_pack("{s:[i,i]}", "label",
                                           text_units(label, (size_t)(from - label)),
                                           text_units(label, (size_t)(p - label))));
    for (from = p + 1; *from == ' ';) from++;
  }
  *active = number;
  return out;
}

json_t *answer_signature(Query *q)
{
  const Called at = called_at(q);
  Text label = text_new(q->a->arena);
  if (!at.name) return json_null();
  const char *says = describe(q, at.name, &label);
  if (!label.n) return json_null();
  /* x.f(a) is f(x, a), but net.f(a) is not */
  bool method = at.name > q->tokens.at && at.name[-1].kind == '.' && !names_meant(q, at.name);
  uint32_t active;
  json_t *list = parameters(label.at, at.key ? at.key->as.name : NULL,
                            at.key ? UINT32_MAX : at.commas + method, &active);
  if (active >= json_array_size(list))
    json_array_clear(list); /* clients would mark the first one */
  return json_pack("{s:[{s:o, s:{s:s, s:o}, s:o}], s:i, s:i}", "signatures", "label",
                   analysis_text(q->a, label.at), "documentation", "kind", "markdown", "value",
                   analysis_text(q->a, says), "parameters", list, "activeSignature", 0,
                   "activeParameter", json_array_size(list) ? (int)active : 0);
}
