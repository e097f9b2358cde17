/* Part of pass decode: the code column of the op table, evaluated with numbers of which some are
 * not known. In what tokens compute, finite numbers are taken for granted. */
#include "decode.h"
#include "compiler/rules/bounds.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Reader {
  const Node *n;
  const Maybe *in;
  double index;
  Maybe named[MAX_STATEMENTS]; /* the results of the statements before */
} Reader;

static const Maybe unknown = {0};

static Maybe known(double v)
{
  return (Maybe){true, v, SIGN_any};
}

static Sign sign_of(Maybe x)
{
  if (!x.known) return x.sign;
  return x.v > 0 ? SIGN_positive : x.v == 0 ? SIGN_not_negative : SIGN_any;
}

static Maybe with_sign(Sign sign)
{
  return (Maybe){.sign = sign};
}

/* Returns the sign of a function's results. Its unknown arguments are taken to be moderate: if exp
 * is above 0 for -80, it is for all numbers. */
static Maybe called_unknown(const char *name, const Maybe *in, uint32_t n)
{
  Interval x[MAX_SIGNATURE];
  for (uint32_t i = 0; i < n; i++) {
    double low = in[i].sign == SIGN_positive ? 1e-9 : in[i].sign == SIGN_not_negative ? 0 : -80;
    x[i] = in[i].known ? (Interval){in[i].v, in[i].v} : (Interval){low, 80};
  }
  Interval y = interval_call(name, x, n);
  return with_sign(y.low > 0 ? SIGN_positive : y.low == 0 ? SIGN_not_negative : SIGN_any);
}

static Maybe called(const char *name, const Maybe *in, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (!in[i].known) return called_unknown(name, in, n);
  double a = n ? in[0].v : 0, b = n > 1 ? in[1].v : 0;
  const struct {
    const char *name;
    double v;
  } functions[] = {{"abs", fabs(a)},
                   {"floor", floor(a)},
                   {"ceil", ceil(a)},
                   {"round", rint(a)},
                   {"sign", (a > 0) - (a < 0)},
                   {"exp", exp(a)},
                   {"log", log(a)},
                   {"sqrt", sqrt(a)},
                   {"relu", a > 0 ? a : 0},
                   {"sigmoid", 1 / (1 + exp(-a))},
                   {"tanh", tanh(a)},
                   {"sin", sin(a)},
                   {"cos", cos(a)},
                   {"isnan", isnan(a)},
                   {"isfinite", isfinite(a)},
                   {"min", fmin(a, b)},
                   {"max", fmax(a, b)},
                   {"pow", pow(a, b)},
                   {"floor_divide", floor(a / b)},
                   {"remainder", a - b * floor(a / b)}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i].name, name) == 0) return known(functions[i].v);
  return unknown;
}

/* Returns the result of an operator. Far below stays there if an unknown number is added, and 0
 * stays 0 if it is multiplied by one. */
static Maybe operated(FormulaKind kind, Maybe a, Maybe b)
{
  bool far_a = a.known && a.v <= FAR_BELOW, far_b = b.known && b.v <= FAR_BELOW;
  bool zero_a = a.known && a.v == 0, zero_b = b.known && b.v == 0;
  if (!a.known || !b.known) {
    bool adds = kind == FORMULA_add, times = kind == FORMULA_mul || kind == FORMULA_bits_and;
    bool scales = kind == FORMULA_mul || kind == FORMULA_div;
    Sign sa = sign_of(a), sb = sign_of(b), less = sa < sb ? sa : sb, more = sa < sb ? sb : sa;
    if (scales && a.known && isinf(a.v) && sb == SIGN_positive) return a;
    if (kind == FORMULA_mul && b.known && isinf(b.v) && sa == SIGN_positive) return b;
    if (far_a && (adds || kind == FORMULA_sub)) return a;
    if (far_b && adds) return b;
    bool zero = (zero_a && (times || kind == FORMULA_div)) || (zero_b && times);
    return zero ? known(0) : with_sign(adds && less ? more : scales ? less : SIGN_any);
  }
  switch (kind) {
  case FORMULA_mul:
    return known(a.v * b.v);
  case FORMULA_div:
    return known(a.v / b.v);
  case FORMULA_add:
    return known(a.v + b.v);
  case FORMULA_sub:
    return known(a.v - b.v);
  case FORMULA_at_most:
    return known(a.v <= b.v);
  case FORMULA_at_least:
    return known(a.v >= b.v);
  case FORMULA_less:
    return known(a.v < b.v);
  case FORMULA_more:
    return known(a.v > b.v);
  case FORMULA_equal:
    return known(a.v == b.v);
  case FORMULA_unequal:
    return known(a.v != b.v);
  case FORMULA_and:
    return known(a.v != 0 && b.v != 0);
  case FORMULA_or:
    return known(a.v != 0 || b.v != 0);
  case FORMULA_bits_and:
    return known((double)((int64_t)a.v & (int64_t)b.v));
  case FORMULA_bits_or:
    return known((double)((int64_t)a.v | (int64_t)b.v));
  default:
    return unknown;
  }
}

static bool is_square(const Node *n, const Formula *f)
{
  const Formula *a = f->in[0], *b = f->in[1];
  bool elements = a->kind == FORMULA_element && b->kind == FORMULA_element;
  return elements && a->index < n->n_in && b->index < n->n_in &&
         n->in[a->index].id == n->in[b->index].id;
}

static Maybe value(const Reader *r, const Formula *f)
{
  const OpCode *code = &op_of(r->n)->code;
  f = code_standing(r->n, f);
  if (f->kind == FORMULA_choose) {
    Maybe c = value(r, f->in[0]);
    return c.known ? value(r, f->in[c.v != 0 ? 1 : 2]) : unknown;
  }
  Maybe in[MAX_SIGNATURE];
  for (uint32_t i = 0; i < f->n; i++) in[i] = value(r, f->in[i]);
  bool absent = f->absent && (f->index >= r->n->n_in || !r->n->in[f->index].id);
  switch (f->kind) {
  case FORMULA_number:
    return known(strtod(f->name, NULL));
  case FORMULA_name:
    return r->named[code_statement(code, f->name) - code->statements];
  case FORMULA_element:
  case FORMULA_row_value:
    return absent ? known(strtod(f->absent, NULL)) : r->in[f->index];
  case FORMULA_attribute:
    return known(attr_as_number(r->n, f->index));
  case FORMULA_index:
    return known(r->index);
  case FORMULA_call:
    return called(f->name, in, f->n);
  case FORMULA_minus:
    return in[0].known ? known(-in[0].v) : unknown;
  case FORMULA_not:
    return in[0].known ? known(in[0].v == 0) : unknown;
  case FORMULA_mul:
    if (!in[0].known && is_square(r->n, f)) return with_sign(SIGN_not_negative);
    return operated(f->kind, in[0], in[1]);
  default:
    return f->n == 2 ? operated(f->kind, in[0], in[1]) : unknown;
  }
}

static Maybe rounded(const Node *n, Maybe x)
{
  if (!x.known) return with_sign(dtype_is_float(n->dtype) ? x.sign : SIGN_any);
  if (n->dtype == AMPC_BOOL) return known(x.v != 0);
  return known(dtype_is_float(n->dtype) ? rule_rounded(n->dtype, x.v) : trunc(x.v));
}

Maybe maybe_of_code(const Node *n, const Maybe *in, double index)
{
  const OpCode *code = &op_of(n)->code;
  Reader r = {.n = n, .in = in, .index = index};
  Maybe last = unknown;
  for (uint32_t i = 0; i < code->n_statements; i++)
    if (code_stands(n, code->statements[i].condition))
      last = r.named[i] = value(&r, code->statements[i].value);
  return rounded(n, last);
}

/* Whether an element that is x adds nothing to the reduction. */
static bool adds_nothing(StatementKind kind, Maybe x)
{
  if (!x.known) return false;
  if (kind == STATEMENT_sum) return x.v == 0;
  if (kind == STATEMENT_product) return x.v == 1;
  if (kind == STATEMENT_max) return x.v <= FAR_BELOW;
  return kind == STATEMENT_min && x.v >= -FAR_BELOW;
}

bool maybe_of_row(const Node *n, Maybe x, Maybe *out)
{
  const OpCode *code = &op_of(n)->code;
  Maybe in[MAX_SIGNATURE] = {x};
  Reader r = {.n = n, .in = in};
  *out = unknown;
  if (code->uses_length || !code->n_statements) return false; /* means divide by all positions */
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    if (!code_stands(n, s->condition)) continue;
    Maybe v = value(&r, s->value);
    if (statement_reduces(s->kind) && !adds_nothing(s->kind, v)) return false;
    r.named[i] = s->kind == STATEMENT_let ? v : unknown;
    if (s->kind == STATEMENT_each) *out = rounded(n, v);
  }
  return true;
}
