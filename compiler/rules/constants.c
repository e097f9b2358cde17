/* Checks that number operands keep their value in the type of the op. A number has no type of its
 * own and never widens a tensor's type. So in 16 bits -1e9 may become -inf, and an eps may become
 * 0. */
#include "rules.h"
#include "runtime/plan/types.h"
#include <math.h>

double rule_rounded(DType d, double v)
{
  const ampc_type *r = ampc_type_of(d);
  if (!isfinite(v) || v == 0) return v;
  if (fabs(v) >= r->overflow) return copysign(INFINITY, v);
  double step = fmax(ldexp(1, ilogb(v) - r->mantissa), r->least);
  return rint(v / step) * step;
}

static bool overflows(DType d, double v)
{
  return isfinite(v) && fabs(v) >= ampc_type_of(d)->overflow;
}

static bool vanishes(DType d, double v)
{
  return v != 0 && rule_rounded(d, v) == 0;
}

/* ---- messages ---- */

static void refuse(Compile *c, const Node *n, DType d, double v)
{
  diag_error(c, E402, n->span, "%s does not fit %s (largest %s)", ir_number_text(c, v),
             ir_dtype_name(d), ampc_type_of(d)->greatest_text);
  diag_help(c, "`-inf` for a mask, or compute it in `autocast(f32)`");
}

static void warn_great(Compile *c, const Node *n, DType d, double v, const char *so)
{
  diag_warning(c, W408, n->span, "%s does not fit %s (largest %s): %s", ir_number_text(c, v),
               ir_dtype_name(d), ampc_type_of(d)->greatest_text, so);
  diag_help(c,
            d == AMPC_F32 ? "write a number that f32 can hold" : "compute it in `autocast(f32)`");
}

static void warn_small(Compile *c, const Node *n, DType d, double v, const char *so)
{
  diag_warning(c, W408, n->span, "%s is 0 in %s (smallest %s): %s", ir_number_text(c, v),
               ir_dtype_name(d), ampc_type_of(d)->least_text, so);
  diag_help(c,
            d == AMPC_F32 ? "write a number that f32 can hold" : "compute it in `autocast(f32)`");
}

/* ---- where numbers occur ---- */

/* Checks a number that is copied to the result: `x.masked_fill(mask, -1e9)` in f16 would silently
 * be -inf. A literal -inf is accepted. */
static void check_copied(Compile *c, const Node *n, double v)
{
  if (overflows(n->dtype, v)) refuse(c, n, n->dtype, v);
  if (vanishes(n->dtype, v)) warn_small(c, n, n->dtype, v, "0 is stored");
}

/* Checks the bound v of max(x, v) or, with sign -1, of min(x, v). */
static void check_bound(Compile *c, const Node *n, double v, int sign)
{
  if (overflows(n->dtype, v) && sign * v > 0) refuse(c, n, n->dtype, v);
  if (vanishes(n->dtype, v)) warn_small(c, n, n->dtype, v, "the bound is 0");
}

/* Checks v in x + v. If v is at least twice the range, x + v is infinite for every x. */
static void check_added(Compile *c, const Node *n, double v)
{
  if (overflows(n->dtype, v / 2))
    refuse(c, n, n->dtype, v);
  else if (overflows(n->dtype, v))
    warn_great(c, n, n->dtype, v, "most sums are infinite");
  if (vanishes(n->dtype, v)) warn_small(c, n, n->dtype, v, "nothing is added");
}

/* Returns which results of x * v (power 1), x / v (v is the inverse) or v / x (power -1) are
 * infinite. Only results are rounded, so a number beyond f16 fits some operands; one beyond f32 is
 * infinite itself. */
static const char *infinite_where(Compile *c, DType d, double v, int power)
{
  double bound = pow(ampc_type_of(d)->overflow / fabs(v), power);
  if (overflows(AMPC_F32, v)) return "most results are infinite";
  return arena_printf(c->arena, "results are infinite where the tensor is %s %.2g",
                      power > 0 ? "above" : "below", bound);
}

static const char *zero_where(Compile *c, DType d, double v, int power)
{
  double bound = pow(ampc_type_of(d)->least / 2 / fabs(v), power);
  if (vanishes(AMPC_F32, v)) return "most results are 0";
  return arena_printf(c->arena, "results are 0 where the tensor is %s %.2g",
                      power > 0 ? "below" : "above", bound);
}

static void check_factor(Compile *c, const Node *n, double v, int power)
{
  DType d = n->dtype;
  if (overflows(d, v)) warn_great(c, n, d, v, infinite_where(c, d, v, power));
  if (vanishes(d, v)) warn_small(c, n, d, v, zero_where(c, d, v, power));
}

/* Checks v in v / x (input 0) or x / v. Division by too small a number overflows. */
static void check_divided(Compile *c, const Node *n, double v, uint32_t input)
{
  if (input == 0) {
    check_factor(c, n, v, -1);
  } else if (v != 0 && overflows(n->dtype, 1 / v)) {
    diag_warning(c, W408, n->span, "division by %s overflows %s (largest %s): %s",
                 ir_number_text(c, v), ir_dtype_name(n->dtype),
                 ampc_type_of(n->dtype)->greatest_text, infinite_where(c, n->dtype, 1 / v, 1));
    diag_help(c, "compute it in `autocast(f32)`");
  } else if (isfinite(v) && v != 0 && vanishes(n->dtype, 1 / v)) {
    diag_warning(c, W408, n->span, "division by %s underflows %s (smallest %s): %s",
                 ir_number_text(c, v), ir_dtype_name(n->dtype), ampc_type_of(n->dtype)->least_text,
                 zero_where(c, n->dtype, 1 / v, 1));
    diag_help(c, "compute it in `autocast(f32)`");
  }
}

/* Checks v in a comparison, which converts v to the tensor's type. */
static void check_compared(Compile *c, const Node *n, double v)
{
  DType d = op_common_type(c, n);
  if (!dtype_is_float(d)) return;
  if (overflows(d, v)) warn_great(c, n, d, v, "no number of the tensor reaches it");
  if (vanishes(d, v)) warn_small(c, n, d, v, "the comparison is with 0");
}

/* ---- the rule ---- */

/* Returns the number node whose value all elements of x have; NULL if there is none. */
static const Node *constant_of(const Graph *g, Value x)
{
  const Node *n = ir_node(g, x);
  if (op_has(n, T_repeats)) return constant_of(g, n->in[0]);
  return n->op == OP_number ? n : NULL;
}

static void check_operand(Compile *c, const Node *n, uint32_t input, double v)
{
  switch (n->op) {
  case OP_add:
  case OP_sub:
    check_added(c, n, v);
    break;
  case OP_mul:
    check_factor(c, n, v, 1);
    break;
  case OP_div:
    check_divided(c, n, v, input);
    break;
  case OP_maximum:
  case OP_minimum:
    check_bound(c, n, v, n->op == OP_maximum ? 1 : -1);
    break;
  default:
    break;
  }
}

static void check_attributes(Compile *c, const Node *n)
{
  const OpSignature *sig = &op_of(n)->signature;
  for (uint32_t i = 0; i < sig->n_attrs; i++) {
    if (sig->attr[i].kind == ATTR_float && op_has(n, T_copies)) check_copied(c, n, n->attr[i].f);
    if (n->op == OP_clamp) check_bound(c, n, n->attr[i].f, i == 0 ? 1 : -1);
  }
}

void rule_check_numbers(Compile *c, const Node *n)
{
  bool real = dtype_is_float(n->dtype), compares = op_has(n, T_compares);
  if (n->weak || (!real && !compares)) return;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Node *number = n->in[i].id ? constant_of(c->graph, n->in[i]) : NULL;
    if (!number) continue;
    double v = attr_float(number, "value");
    if (compares)
      check_compared(c, n, v);
    else if (op_has(n, T_copies))
      check_copied(c, n, v);
    else
      check_operand(c, n, i, v);
  }
  if (real) check_attributes(c, n);
}

bool rule_numbers_fit(Compile *c, const Node *n)
{
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Node *number = n->in[i].id ? constant_of(c->graph, n->in[i]) : NULL;
    double v = number ? attr_float(number, "value") : 0;
    if (overflows(n->dtype, v) || vanishes(n->dtype, v)) return false;
  }
  return true;
}

/* ---- powers ---- */

bool rule_literal(const Node *n, double *out)
{
  if (n->op == OP_number) *out = attr_float(n, "value");
  if (n->op == OP_integer) *out = (double)attr_int(n, "value");
  return n->op == OP_number || n->op == OP_integer;
}

/* Returns x^e without `pow` for the exponents that PyTorch treats so; value 0 for others. With e =
 * 0.5, sqrt determines the results for -0 and -inf. In 16 bits x^3 and x^-2 remain powers, because
 * x * x would be rounded first. */
static Value simple_power(Compile *c, const Cursor *at, Value x, double e, bool wide)
{
  if (e == 1) return x;
  if (e == -1) return ir_unary(c, at, OP_reciprocal, x);
  if (e == 0.5) return ir_unary(c, at, OP_sqrt, x);
  if (e == -0.5) return ir_unary(c, at, OP_rsqrt, x);
  if (e != 2 && !(wide && (e == 3 || e == -2))) return (Value){0};
  Value square = ir_binary(c, at, OP_mul, x, x);
  if (e == 3) return ir_binary(c, at, OP_mul, square, x);
  return e == 2 ? square : ir_unary(c, at, OP_reciprocal, square);
}

Value rule_simple_power(Compile *c, const Node *n)
{
  double e;
  if (n->op != OP_pow || !rule_literal(ir_in(c, n, 1), &e)) return (Value){0};
  if (ir_in(c, n, 0)->dtype != n->dtype || !dtype_is_float(n->dtype)) return (Value){0};
  Cursor at = ir_cursor_like(n);
  Value v = simple_power(c, &at, n->in[0], e, n->dtype == AMPC_F32);
  if (v.id && e != 1) ir_node(c->graph, v)->name = n->name;
  return v;
}
