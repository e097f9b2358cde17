/* Calls of the functions of prelude.amp. A function becomes the expression that it returns if all
 * before its `return` are numbers, conditions and assertions that the compiler knows. Otherwise the
 * job calls the function, and contains it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/syntax/ast.h"
#include "read_ops.h"

typedef struct Inline {
  Reader *r;
  NameMap texts; /* of parameters and variables */
  bool open;     /* it is no expression */
  uint32_t n;    /* expressions behind `return` */
} Inline;

/* ---- arguments ---- */

/* The text of an input whose numbers a function needs when the job compiles: "3", "[1, 2]". */
static const char *known_input(Reader *r, const Value *v, const Param *p)
{
  double number;
  Text all = text_new(r->arena);
  if (v->kind == VALUE_items && v->shape->rank == 1)
    return text(r, "[%s]", list_text(r, v->item, v->n));
  if (v->kind == VALUE_items && v->n == 1) return item_text(r, v->item[0]);
  if (one_number(v, &number))
    return strcmp(p->type.name, "int") == 0 ? text(r, "%.0f", number) : float_text(r, number);
  bool list =
      v->kind == VALUE_weight && rank_of(v) == 1 && tensor_elements(v->tensor) <= MOST_ITEMS;
  if (!list) return refuse(r, text(r, "with a computed %s", p->name.text)), NULL;
  for (int64_t i = 0; i < tensor_elements(v->tensor); i++)
    list_add(&all, float_text(r, tensor_real(v->tensor, i)));
  return text(r, "[%s]", all.at ? all.at : "");
}

static const char *attribute_text(Reader *r, const OnnxAttribute *a)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ.,-> ";
  Item *at;
  uint32_t n;
  if (a->has_i) return text(r, "%" PRId64, a->i);
  if (a->has_f) return float_text(r, (double)a->f);
  if (attr_list(r, a->name, &at, &n) && (n || !a->has_s)) return text(r, "[%s]", list_text(r, at, n));
  const char *word = attr_word(r, a->name, "");
  if (!*word || word[strspn(word, letters)])
    return refuse(r, text(r, "with this %s", name_clean(r, a->name, "attribute"))), NULL;
  return text(r, "\"%s\"", word);
}

/* The value of parameter i: input i, or the attribute of its name. "": it is absent. NULL after
 * refusing. Parameters with a type are known when the job compiles; a, b and c are broadcast. */
static const char *argument_text(Reader *r, const Param *p, size_t i)
{
  const char *name = p->name.text;
  if (strcmp(name, "opset") == 0) return text(r, "%" PRId64, r->opset);
  if (strcmp(name, "all") == 0) {
    Text all = text_new(r->arena);
    for (size_t k = i; k < r->node->n_input; k++)
      list_add(&all, in(r, k) ? whole_ref(r, in(r, k)) : "none");
    return text(r, "[%s]", all.at);
  }
  const OnnxAttribute *a = p->type.name ? attribute(r, name) : NULL;
  const Value *v = a ? NULL : in(r, i);
  if (a) return attribute_text(r, a);
  if (!v && !p->value) return refuse(r, text(r, "without %s", name)), NULL;
  if (v && p->type.name) return known_input(r, v, p);
  return !v ? "" : !name[1] && strchr("abc", *name) ? operand(r, i) : whole_ref(r, v);
}

/* ---- expressions ---- */

typedef enum Stands { ALONE, OPERAND, TIGHT } Stands; /* TIGHT: of `**`, `-`, `.` or `[` */

static const char *shown(Inline *n, const Expr *e, Stands as);

static const char *bracketed(const Inline *n, const char *code, Stands as)
{
  int depth = 0;
  bool loose = *code == '-' && as == TIGHT;
  for (const char *at = code; *at; at++) {
    depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
    loose = loose || (depth == 0 && *at == ' ');
  }
  return loose && as != ALONE ? text(n->r, "(%s)", code) : code;
}

/* Adds the text of a part, and what the function has before it. */
static void add_part(Inline *n, Text *out, uint32_t *from, const Expr *part, Stands as)
{
  if (!part) return;
  text_puts(out, ask_source(n->r, *from, part->span.start));
  text_puts(out, shown(n, part, as));
  *from = part->span.end;
}

/* Whether an argument is none, or usually(x, y) with equal x and y. */
static bool is_left_out(Inline *n, const Expr *e, const char *value)
{
  const ArgList *own = &e->as.call.args;
  return strcmp(value, "none") == 0 || (strcmp(called_name(e), "usually") == 0 &&
                                        strcmp(value, shown(n, own->at[1].value, ALONE)) == 0);
}

/* Arguments, or the elements of a list. */
static const char *list_shown(Inline *n, const ArgList *all, bool arguments)
{
  Text out = text_new(n->r->arena);
  for (uint32_t i = 0; i < all->n; i++) {
    const char *name = all->at[i].key.text, *value = shown(n, all->at[i].value, ALONE);
    n->open = n->open || all->at[i].star;
    if (!arguments || !is_left_out(n, all->at[i].value, value))
      list_add(&out, name ? text(n->r, "%s=%s", name, value) : value);
  }
  return out.at ? out.at : "";
}

static const char *parts_shown(Inline *n, const Expr *e)
{
  Text out = text_new(n->r->arena);
  uint32_t from = e->span.start;
  switch (e->kind) {
  case EXPR_unary:
    add_part(n, &out, &from, e->as.unary.operand, TIGHT);
    break;
  case EXPR_binary:
    add_part(n, &out, &from, e->as.binary.left, e->as.binary.op == OPER_pow ? TIGHT : OPERAND);
    add_part(n, &out, &from, e->as.binary.right, OPERAND);
    break;
  case EXPR_index:
    add_part(n, &out, &from, e->as.index.base, TIGHT);
    for (uint32_t i = 0; i < e->as.index.subs.n; i++) {
      const Sub *s = &e->as.index.subs.at[i];
      add_part(n, &out, &from, s->index, ALONE);
      add_part(n, &out, &from, s->start, ALONE);
      add_part(n, &out, &from, s->stop, ALONE);
      add_part(n, &out, &from, s->step, ALONE);
    }
    break;
  case EXPR_attr:
    add_part(n, &out, &from, e->as.attr.base, TIGHT);
    break;
  case EXPR_list:
    return text(n->r, "[%s]", list_shown(n, &e->as.args, false));
  default:
    n->open = true;
  }
  text_puts(&out, ask_source(n->r, from, e->span.end));
  return out.at;
}

static const char *call_shown(Inline *n, const Expr *e)
{
  const Expr *callee = e->as.call.callee;
  Text name = text_new(n->r->arena);
  uint32_t from = e->span.start;
  if (callee->kind == EXPR_attr) add_part(n, &name, &from, callee->as.attr.base, TIGHT);
  text_puts(&name, ask_source(n->r, from, callee->span.end));
  return text(n->r, "%s(%s)", name.at, list_shown(n, &e->as.call.args, true));
}

/* What is known is its value. */
static const char *shown(Inline *n, const Expr *e, Stands as)
{
  if (e->kind == EXPR_float) return ask_source(n->r, e->span.start, e->span.end);
  const char *value = n->open || n->r->dropped ? "" : ask_value(n->r, e), *own = NULL;
  if (!value) return "";
  if (*value && value != VARIES) return bracketed(n, value, as);
  if (e->kind == EXPR_call) return call_shown(n, e);
  if (e->kind == EXPR_name) own = names_get(&n->texts, e->as.name);
  if (own) return bracketed(n, own, as);
  if (e->kind != EXPR_cond) return parts_shown(n, e);
  const char *test = ask_value(n->r, e->as.cond.test);
  if (test == VARIES) n->open = true;
  return shown(n, test && *test == 'f' ? e->as.cond.other : e->as.cond.then, as);
}

/* ---- statements ---- */

static void bind(Inline *n, const char *name, const char *value)
{
  *names_at(&n->texts, name) = (void *)(uintptr_t)value;
  ask_bind(n->r, name, value);
}

static void inline_assign(Inline *n, const Stmt *s)
{
  const ExprList *to = &s->as.assign.targets, *values = &s->as.assign.values;
  bool names = to->n == values->n;
  for (uint32_t i = 0; names && i < to->n && !n->r->dropped; i++) {
    const char *value = ask_value(n->r, values->at[i]);
    names = value && *value && to->at[i]->kind == EXPR_name;
    if (names) bind(n, to->at[i]->as.name, shown(n, values->at[i], ALONE));
  }
  n->open = n->open || !names;
}

static void inline_assert(Inline *n, const ExprList *e)
{
  const char *holds = ask_value(n->r, e->at[0]),
             *why = holds && *holds == 'f' ? ask_value(n->r, e->at[1]) : NULL;
  if (why) refuse(n->r, reason_of(n->r, text(n->r, "%.*s", (int)strlen(why) - 2, why + 1)));
}

/* The expressions that the statements return; NULL: none. */
static const char *inline_block(Inline *n, const Block *b)
{
  const char *result = NULL;
  for (uint32_t i = 0; i < b->n && !result && !n->open && !n->r->dropped; i++) {
    const Stmt *s = b->at[i];
    if (s->kind == STMT_return) {
      Text all = text_new(n->r->arena);
      uint32_t wanted = n_results(n->r);
      n->n = s->as.exprs.n;
      for (uint32_t k = 0; k < n->n && k < wanted; k++) list_add(&all, shown(n, s->as.exprs.at[k], ALONE));
      result = all.at;
    } else if (s->kind == STMT_if) {
      const char *test = ask_value(n->r, s->as.branch.test);
      n->open = test == VARIES;
      if (test && !n->open)
        result = inline_block(n, *test == 't' ? &s->as.branch.then : &s->as.branch.other);
    } else if (s->kind == STMT_assign) {
      inline_assign(n, s);
    } else if (s->kind == STMT_assert) {
      inline_assert(n, &s->as.exprs);
    } else {
      n->open = true;
    }
  }
  return result;
}

/* ---- nodes ---- */

bool read_prelude(Reader *r)
{
  const char *name = text(r, "onnx_%s", r->node->op_type);
  const Function *f = ask_function(r, name);
  Inline n = {.r = r, .texts.arena = r->arena};
  Text all = text_new(r->arena);
  if (!f) return false;
  for (uint32_t i = 0; i < f->params.n; i++) {
    const Param *p = &f->params.at[i];
    const char *value = argument_text(r, p, i);
    if (!value) return true;
    if (*value) list_add(&all, p->value ? text(r, "%s=%s", p->name.text, value) : value);
    if (!*value) value = ask_source(r, p->value->span.start, p->value->span.end);
    bind(&n, p->name.text, value);
  }
  const char *code = inline_block(&n, &f->body);
  if (r->dropped) return true;
  if (n.open || !code) code = text(r, "%s(%s)", name, all.at);
  give_results(r, code, n_results(r));
  bool several = n_results(r) == 1 && !r->dropped && result(r, 0) && !result(r, 0)->shape;
  if (several) r->steps.n--; /* only the first result is needed */
  if (several) give(r, text(r, "%s[0]", code));
  return true;
}
