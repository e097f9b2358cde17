/* Gradients that the op table gives as formulas: by(..) in ops.def. A formula is evaluated with
 * nodes of the graph as its values. */
#include "gradient.h"
#include <string.h>

/* The nodes of the lets so far: of statement i, or {0}. */
typedef struct Maker {
  Back *b;
  const OpCode *code;
  Value named[MAX_STATEMENTS];
} Maker;

static Value make(const Maker *m, const Formula *f);

/* Appends the op of an operator or function. Operands are appended from the last to the first. In
 * x * NUMBER, x comes first. The order is fixed here, because C leaves the order of arguments
 * open. */
static Value make_op(const Maker *m, const Formula *f)
{
  Back *b = m->b;
  Value in[MAX_SIGNATURE] = {{0}};
  bool scales = f->kind == FORMULA_mul && code_is_number(m->code, f->in[1]);
  if (scales) in[0] = make(m, f->in[0]);
  for (uint32_t i = f->n; i-- > 0;)
    if (!in[i].id) in[i] = make(m, f->in[i]);
  if (f->name && strcmp(f->name, "wide") == 0) return back_wide(b, in[0]);
  return back_like(b, code_op(f), in, f->n);
}

static Value make_name(const Maker *m, const char *name)
{
  if (strcmp(name, "dy") == 0) return m->b->dy;
  if (strcmp(name, "y") == 0) return m->b->y;
  return m->named[code_statement(m->code, name) - m->code->statements];
}

static Value make(const Maker *m, const Formula *f)
{
  if (code_is_number(m->code, f)) return back_number(m->b, code_number(&m->b->n, m->code, f));
  if (f->kind == FORMULA_element) return m->b->n.in[f->index];
  if (f->kind == FORMULA_name) return make_name(m, f->name);
  return make_op(m, f);
}

/* Inputs that are absent get no gradient. */
void grad_formula(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  const OpCode *back = &op_of(&b.n)->back;
  Maker m = {.b = &b, .code = back};
  uint32_t input = 0;
  for (uint32_t i = 0; i < back->n_statements; i++) {
    const CodeStatement *s = &back->statements[i];
    if (s->kind == STATEMENT_let) {
      if (!code_is_number(back, s->value)) m.named[i] = make(&m, s->value);
      continue;
    }
    bool there = input < b.n.n_in && b.n.in[input].id;
    if (there && s->value) out_dx[input] = make(&m, s->value);
    input++;
  }
}
