/* Evaluates the code column of the op table with intervals instead of numbers. So the bounds of an
 * op follow from its row, and an op that is added has bounds, too. The same operand in two places
 * counts as two numbers: x - x is not 0. Where that loses too much, bounds.c has a rule.
 *
 * Labels and indices are assumed to be valid, since a run ends at the first one that is not. */
#include "bounds.h"
#include <math.h>
#include <stdlib.h>

typedef struct Reader {
  const Node *n;
  const Interval *in;
  Interval length;
  Interval named[MAX_STATEMENTS]; /* the results of the statements before */
} Reader;

static Interval operand(const Reader *r, const Formula *f)
{
  bool there = f->index < r->n->n_in && r->n->in[f->index].id;
  return there || !f->absent ? r->in[f->index] : interval_of(strtod(f->absent, NULL));
}

/* Returns the interval of a formula. The result of a comparison is 0 or 1. */
static Interval value(const Reader *r, const Formula *f)
{
  const OpCode *code = &op_of(r->n)->code;
  Interval in[MAX_SIGNATURE];
  f = code_standing(r->n, f);
  for (uint32_t i = 0; i < f->n; i++) in[i] = value(r, f->in[i]);
  switch (f->kind) {
  case FORMULA_number:
    return interval_of(strtod(f->name, NULL));
  case FORMULA_name:
    return r->named[code_statement(code, f->name) - code->statements];
  case FORMULA_element:
  case FORMULA_row_value:
    return operand(r, f);
  case FORMULA_attribute:
    return interval_of(attr_as_number(r->n, f->index));
  case FORMULA_length:
    return r->length;
  case FORMULA_normal:
    return INTERVAL_NORMAL;
  case FORMULA_index:
  case FORMULA_column:
  case FORMULA_size:
    return (Interval){0, fmax(r->length.high, (double)ir_elements(r->n))};
  case FORMULA_call:
    return interval_call(f->name, in, f->n);
  case FORMULA_minus:
    return interval_neg(in[0]);
  case FORMULA_mul:
    return interval_mul(in[0], in[1]);
  case FORMULA_div:
    return interval_div(in[0], in[1]);
  case FORMULA_add:
    return interval_add(in[0], in[1]);
  case FORMULA_sub:
    return interval_add(in[0], interval_neg(in[1]));
  case FORMULA_choose:
    return interval_join(in[1], in[2]);
  default: /* comparisons, what joins them, $uniform */
    return (Interval){0, 1};
  }
}

/* ---- statements ---- */

static Interval statement(const Reader *r, const CodeStatement *s)
{
  Interval each = value(r, s->value);
  switch (s->kind) {
  case STATEMENT_sum:
    return interval_sum(each, r->length);
  case STATEMENT_product:
    return INTERVAL_ANY;
  case STATEMENT_near:
    return interval_widen(each, 0x1p-20);
  case STATEMENT_first:
    return (Interval){0, r->length.high - 1};
  default:
    return each;
  }
}

Interval interval_of_code(const Node *n, const Interval *in, Interval length)
{
  const OpCode *code = &op_of(n)->code;
  Reader r = {.n = n, .in = in, .length = length};
  Interval last = INTERVAL_ANY;
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    if (code_stands(n, s->condition)) last = r.named[i] = statement(&r, s);
  }
  return last;
}
