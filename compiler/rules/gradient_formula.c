/* Gradients that the op table gives as formulas: by(..) in ops.def. A formula is evaluated with
 * nodes of the graph as its values. */
#include "gradient.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The nodes of the lets so far: of statement i, or {0}. */
typedef struct Maker {
  Back *b;
  Value named[MAX_STATEMENTS];
} Maker;

/* ---- numbers ---- */

/* Returns the let that defines a name; NULL for dy and y. */
static const CodeStatement *let_of(const Maker *m, const char *name)
{
  const OpCode *back = &op_of(&m->b->n)->back;
  for (uint32_t i = 0; i < back->n_statements; i++) {
    const CodeStatement *s = &back->statements[i];
    if (s->name && strcmp(s->name, name) == 0) return s;
  }
  return NULL;
}

/* True if the formula is a number: it names no node. */
static bool is_number(const Maker *m, const Formula *f)
{
  if (f->kind == FORMULA_name) {
    const CodeStatement *let = let_of(m, f->name);
    return let && is_number(m, let->value);
  }
  bool is = f->kind != FORMULA_element;
  for (uint32_t i = 0; i < f->n; i++) is &= is_number(m, f->in[i]);
  return is;
}

static double number(const Maker *m, const Formula *f);

static double number_of_call(const Maker *m, const Formula *f)
{
  static const struct {
    const char *name;
    double (*f)(double);
  } functions[] = {{"acos", acos}, {"log", log}, {"sqrt", sqrt}};
  size_t i = 0;
  while (strcmp(functions[i].name, f->name) != 0) i++;
  return functions[i].f(number(m, f->in[0]));
}

static double number(const Maker *m, const Formula *f)
{
  const Node *n = &m->b->n;
  double x = f->n == 2 ? number(m, f->in[0]) : 0, y = f->n == 2 ? number(m, f->in[1]) : 0;
  switch (f->kind) {
  case FORMULA_number:
    return strtod(f->name, NULL);
  case FORMULA_name:
    return number(m, let_of(m, f->name)->value);
  case FORMULA_attribute:
    return op_of(n)->signature.attr[f->index].kind == ATTR_float ? n->attr[f->index].f
                                                                 : (double)n->attr[f->index].i;
  case FORMULA_call:
    return number_of_call(m, f);
  case FORMULA_minus:
    return -number(m, f->in[0]);
  case FORMULA_mul:
    return x * y;
  case FORMULA_div:
    return x / y;
  case FORMULA_add:
    return x + y;
  case FORMULA_sub:
    return x - y;
  default:
    op_broken(op_of(n), "a gradient needs a number that is not", "+ - * /");
  }
}

/* ---- nodes ---- */

static Value make(const Maker *m, const Formula *f);

/* Returns the op of an operator; its row in the table prints it the same way. */
static OpKind op_of_operator(FormulaKind kind)
{
  static const OpKind ops[] = {[FORMULA_mul] = OP_mul,
                               [FORMULA_div] = OP_div,
                               [FORMULA_add] = OP_add,
                               [FORMULA_sub] = OP_sub,
                               [FORMULA_at_most] = OP_le,
                               [FORMULA_at_least] = OP_ge,
                               [FORMULA_less] = OP_lt,
                               [FORMULA_more] = OP_gt,
                               [FORMULA_equal] = OP_eq,
                               [FORMULA_unequal] = OP_ne,
                               [FORMULA_bits_and] = OP_logical_and,
                               [FORMULA_bits_or] = OP_logical_or,
                               [FORMULA_choose] = OP_where,
                               [FORMULA_minus] = OP_neg,
                               [FORMULA_not] = OP_logical_not};
  return ops[kind];
}

/* Appends the op of an operator or function. Operands are appended from the last to the first, but
 * the number in x * 2 after x. So the order of nodes does not depend on the C compiler. */
static Value make_op(const Maker *m, const Formula *f)
{
  Back *b = m->b;
  Value in[MAX_SIGNATURE] = {{0}};
  bool scales = f->kind == FORMULA_mul && is_number(m, f->in[1]);
  if (scales) in[0] = make(m, f->in[0]);
  for (uint32_t i = f->n; i-- > 0;)
    if (!in[i].id) in[i] = make(m, f->in[i]);
  if (f->kind != FORMULA_call)
    return ir_append(b->c, &b->at, op_of_operator(f->kind), in, f->n, NULL);
  if (strcmp(f->name, "wide") == 0) return back_wide(b, in[0]);
  return back_like(b, op_named(f->name), in, f->n);
}

static Value make_name(const Maker *m, const char *name)
{
  if (strcmp(name, "dy") == 0) return m->b->dy;
  if (strcmp(name, "y") == 0) return m->b->y;
  return m->named[let_of(m, name) - op_of(&m->b->n)->back.statements];
}

static Value make(const Maker *m, const Formula *f)
{
  if (is_number(m, f)) return back_number(m->b, number(m, f));
  if (f->kind == FORMULA_element) return m->b->n.in[f->index];
  if (f->kind == FORMULA_name) return make_name(m, f->name);
  return make_op(m, f);
}

/* Inputs that are absent get no gradient. */
void grad_formula(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  const OpCode *back = &op_of(&b.n)->back;
  Maker m = {.b = &b};
  uint32_t input = 0;
  for (uint32_t i = 0; i < back->n_statements; i++) {
    const CodeStatement *s = &back->statements[i];
    if (s->kind == STATEMENT_let) {
      if (!is_number(&m, s->value)) m.named[i] = make(&m, s->value);
      continue;
    }
    bool there = input < b.n.n_in && b.n.in[input].id;
    if (there && s->value) out_dx[input] = make(&m, s->value);
    input++;
  }
}
