/* textDocument/references and documentHighlight. A name in the text is resolved as definition.c
 * does it. */
#include "references.h"
#include "context.h"
#include "compiler/syntax/lex_words.h"

typedef enum Reading { READ_other, READ_same, READ_unclear } Reading;

static bool is_same(const VisibleName *a, const VisibleName *b)
{
  return a && a->scope == b->scope && same_name(a->text, b->text);
}

/* True if the job has only tensors before the dot: their methods are functions of the files. */
static bool is_tensor(const Query *q, const Token *dot)
{
  const Token *base = names_base(q, dot);
  DescribedVec values = {0};
  if (base) meanings_at(q->a->c, base->span, &values);
  bool tensor = false, other = false;
  for (uint32_t i = 0; i < values.n; i++) {
    if (values.at[i].result != (base + 1 < dot)) continue;
    tensor = tensor || values.at[i].tensor;
    other = other || !values.at[i].tensor;
  }
  return tensor && !other;
}

static Reading read_member(const Query *q, const Token *t, const VisibleName *target)
{
  const VisibleName *n = names_meant(q, t);
  bool callable = target->decl && (target->decl->kind == DECL_def || target->decl->kind == DECL_op);
  bool member = names_within(target, DECL_module);
  if (!callable && !member) return READ_other;
  if (n) return is_same(n, target) ? READ_same : READ_other;
  if (!is_tensor(q, t - 1)) return READ_unclear;
  return member ? READ_other : READ_same;
}

/* Returns the scope of the parameters of what is called. */
static const void *scope_called(const VisibleName *f)
{
  return f->method ? (const void *)f->method : f->decl;
}

/* Returns the meaning of what is called: of x.f(a), for a tensor x, that of f(x, a). */
static const VisibleName *callee_of(const Query *q, const Token *name)
{
  const VisibleName *n = names_meant(q, name);
  bool method = !n && name > q->tokens.at && name[-1].kind == '.' && is_tensor(q, name - 1);
  return method ? names_found(q, name->as.name) : n;
}

/* Reads the name of an argument by what is called. */
static Reading read_argument(const Query *q, const Token *callee, const VisibleName *target)
{
  const VisibleName *n = callee_of(q, callee), *f = names_called(q, n);
  const void *scope = f ? scope_called(f) : NULL;
  bool member = callee > q->tokens.at && callee[-1].kind == '.';
  if (!target->param) return READ_other;
  if (scope) return scope == target->scope ? READ_same : READ_other;
  if (n && *names_class(q, n)) return READ_other; /* of a built-in layer */
  if (!n && !member) return READ_other;           /* a built-in */
  return READ_unclear;
}

/* True for the name of a metric and for a setting, which are no names of the language. */
static bool is_label(const Query *q, const Context *at, const Token *t)
{
  bool metric = t > q->tokens.at && t[-1].kind == TOK_NAME && same_name(t[-1].as.name, "metric");
  return metric || (at->with && at->open != '(' && t[1].kind == '=');
}

/* Says whether a token with the text of the target is one of its places. */
static Reading read_token(Query *q, const Token *t, const VisibleName *target)
{
  q->offset = t->span.start;
  const Context at = context_at(q);
  if (t > q->tokens.at && t[-1].kind == '.') return read_member(q, t, target);
  if (is_label(q, &at, t)) return READ_other;
  if (at.argument && at.callee) return read_argument(q, at.callee, target);
  return is_same(names_meant(q, t), target) ? READ_same : READ_other;
}

/* Returns the parameter that an argument sets. */
static const VisibleName *parameter_of(const Query *q, const Context *at)
{
  const VisibleName *f = at->callee ? names_called(q, callee_of(q, at->callee)) : NULL;
  const ParamList *params = f ? names_params(f) : NULL;
  for (uint32_t i = 0; params && i < params->n; i++) {
    const Name *name = &params->at[i].name;
    if (!same_name(name->text, at->name->as.name)) continue;
    VisibleName *out = arena_new(q->a->arena, VisibleName);
    *out = (VisibleName){.text = name->text, .span = name->span, .param = true};
    out->scope = scope_called(f);
    out->within = f->method ? NULL : f->decl;
    return out;
  }
  return NULL;
}

const VisibleName *references_target(const Query *q, const Token **token)
{
  const Context at = context_at(q);
  *token = at.name;
  if (!at.name || is_label(q, &at, at.name)) return NULL;
  return at.argument ? parameter_of(q, &at) : names_meant(q, at.name);
}

static void find_in_source(Query *q, const VisibleName *target, Spans *out, Spans *unclear)
{
  for (uint32_t i = 0; i < q->tokens.n; i++) {
    const Token *t = &q->tokens.at[i];
    if (t->kind != TOK_NAME || !same_name(t->as.name, target->text)) continue;
    Reading r = read_token(q, t, target);
    if (r == READ_same) vec_push(q->a->arena, out, t->span);
    if (r == READ_unclear && unclear) vec_push(q->a->arena, unclear, t->span);
  }
}

void references_find(const Query *q, const VisibleName *target, bool everywhere, Spans *out,
                     Spans *unclear)
{
  for (uint32_t i = 0; i < q->a->c->sources.n; i++) {
    const Source *s = &q->a->c->sources.at[i];
    Query other = *q;
    if ((everywhere || s == q->source) && query_look(&other, s))
      find_in_source(&other, target, out, unclear);
  }
}

json_t *answer_declared(Query *q)
{
  const Token *token;
  const VisibleName *target = references_target(q, &token);
  return target ? analysis_location(q->a, q->a->c, target->span) : json_null();
}

static json_t *found_places(const Query *q, bool everywhere)
{
  Spans places = {0};
  const Token *token;
  const VisibleName *target = references_target(q, &token);
  if (!target) return json_null();
  references_find(q, target, everywhere, &places, NULL);
  json_t *out = json_array(),
         *all = json_object_get(json_object_get(q->params, "context"), "includeDeclaration");
  for (uint32_t i = 0; i < places.n; i++)
    if (!everywhere || !json_is_false(all) || places.at[i].start != target->span.start)
      json_array_append_new(out, analysis_location(q->a, q->a->c, places.at[i]));
  return out;
}

json_t *answer_references(Query *q)
{
  return found_places(q, true);
}

json_t *answer_highlight(Query *q)
{
  return found_places(q, false);
}
