/* Computes with compile-time values, as in Python: `/` returns a float, `//` and `%` round down,
 * int `**` int is an int. Checks that a value has the kind and range that its place needs are also
 * here (E209). */
#include "elaborate.h"
#include "common/number.h"
#include <math.h>

/* ---- checks ---- */

/* Reports a wrong kind. `what` names the place: "the axis of size needs an int, got float 1.5". */
static bool wrong_kind(Lower *l, Datum d, Span span, const char *what, const char *wanted)
{
  if (d_is(d, D_error)) return false;
  return refuse(l, E209, span, "%s needs %s, got %s", what, wanted, d_kind_text(l, d));
}

/* Returns the const with this name and value; NULL: there is none, or -D gives the value. */
static const Decl *const_named(const Lower *l, const char *name, Datum d)
{
  const Options *o = &l->c->options;
  for (uint32_t i = 0; i < o->n_consts; i++)
    if (strcmp(o->consts[i].key, name) == 0) return NULL;
  for (uint32_t i = 0; i < l->files.n; i++)
    for (uint32_t k = 0; k < l->files.at[i]->globals.n; k++) {
      const Global *g = &l->files.at[i]->globals.at[k];
      if (g->decl && g->decl->kind == DECL_const && strcmp(g->name, name) == 0 &&
          d_is_number(g->value) && d_number(g->value) == d.as.number)
        return g->decl;
    }
  return NULL;
}

/* Helps with a float, such as 64 / 2, 5e2 or sqrt(16), perhaps the value of a const. */
static bool help_int(Lower *l, Datum d, Span span)
{
  if (d.kind != D_float) return false;
  const Decl *named = const_named(l, source_text(l, diag_user_span(l->c, span)), d);
  const char *there = named ? arena_printf(l->arena, "in `const %s`, ", named->name.text) : "";
  if (named) span = named->as.constant.value->span;
  if (named) diag_note(l->c, span, "`%s` gets its value here", named->name.text);
  const char *text = source_text(l, diag_user_span(l->c, span)), *slash = strchr(text, '/');
  if (slash && slash == strrchr(text, '/') && !strchr(text, '"') && !strstr(text, "..."))
    return diag_help(l->c, "%swrite `%.*s/%s`: `/` gives a float", there, (int)(slash - text), text,
                     slash);
  if (d.as.number != floor(d.as.number)) return false;
  if (slash) return diag_help(l->c, "%swrite `int(..)` around it, or divide with `//`", there);
  if (strchr(text, '(')) return diag_help(l->c, "%swrite `int(..)` around it", there);
  return diag_help(l->c, "%swrite `%.0f`", there, d.as.number);
}

bool want_int(Lower *l, Datum d, Span span, const char *what, int64_t *out)
{
  if (d.kind != D_int) return wrong_kind(l, d, span, what, "an int") || help_int(l, d, span);
  *out = d.as.integer;
  return true;
}

/* Reads a float or an int. want_int() does not accept a float, since 2.0 layers are a mistake. */
bool want_float(Lower *l, Datum d, Span span, const char *what, double *out)
{
  if (!d_is_number(d)) return wrong_kind(l, d, span, what, "a number");
  *out = d_number(d);
  return true;
}

bool want_count(Lower *l, Datum d, Span span, const char *what, Counts range, int64_t *out)
{
  char text[AMPC_RANGE_ROOM];
  if (!want_int(l, d, span, what, out)) return false;
  if (*out >= range.least && *out <= range.most) return true;
  return refuse(l, E209, span, "%s is %lld; it must be %s", what, (long long)*out,
                ampc_range_text(text, range.least, range.most));
}

/* Reads a number of a domain. Rounding to f32 can reach an excluded bound: 0.999999999 becomes
 * 1. */
bool want_in(Lower *l, Datum d, Span span, const char *what, ampc_domain domain, double *out)
{
  if (!want_float(l, d, span, what, out)) return false;
  if (ampc_in_domain(domain, *out)) return true;
  double rounded = (double)(float)*out;
  bool changed = rounded != *out && (rounded == 0 || rounded == 1 || isinf(rounded));
  const char *as_f32 = changed ? arena_printf(l->arena, ", in f32 %g", rounded) : "";
  return refuse(l, E209, span, "%s is %s%s; it must be %s", what, d_text(l, d), as_f32,
                ampc_domain_text(domain));
}

bool want_bool(Lower *l, Datum d, Span span, const char *what, bool *out)
{
  if (d.kind != D_bool) return wrong_kind(l, d, span, what, "true or false");
  *out = d.as.truth;
  return true;
}

bool want_str(Lower *l, Datum d, Span span, const char *what, const char **out)
{
  if (d.kind != D_str) return wrong_kind(l, d, span, what, "a str");
  *out = d.as.text;
  return true;
}

bool want_dtype(Lower *l, Datum d, Span span, const char *what, DType *out)
{
  *out = d.as.dtype;
  if (d.kind == D_dtype) return true;
  wrong_kind(l, d, span, what, "a type");
  if (d.kind == D_type_of)
    diag_help(l->c, "pass precision decides this type later; it is allowed only in `x.to(..)` or "
                    "as `dtype=` of a new tensor");
  else if (d.kind == D_str)
    foreign_help(l, "device");
  else if (!d_is(d, D_error))
    diag_help(l->c, "types are " AMPC_NARROW_LIST "f32, i32, i64, u8, bool");
  return false;
}

bool want_sizes(Lower *l, Datum d, Span span, const char *what, int64_t *dim, uint32_t *rank)
{
  if (d.kind == D_int) {
    dim[0] = d.as.integer;
    *rank = 1;
    return true;
  }
  if (d.kind != D_list) return wrong_kind(l, d, span, what, "a list of ints");
  if (d.n > MAX_RANK)
    return refuse(l, E209, span, "%s has %u sizes; tensors have at most %d axes", what, d.n,
                  MAX_RANK);
  for (uint32_t i = 0; i < d.n; i++)
    if (!want_int(l, d.as.list[i], span, what, &dim[i])) return false;
  *rank = d.n;
  return true;
}

/* ---- integers ---- */

/* Computes a power by squaring. Returns false if the result does not fit 64 bits. */
static bool power(int64_t base, int64_t exponent, int64_t *out)
{
  int64_t r = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(r, base, &r)) return false;
    exponent >>= 1;
    if (exponent && __builtin_mul_overflow(base, base, &base)) return false;
  }
  *out = r;
  return true;
}

/* Divides like Python, which rounds down: -7 // 2 is -4. C rounds towards zero. */
static int64_t floor_div(int64_t a, int64_t b)
{
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

/* Computes an integer result. Sizes depend on it, so overflow is an error and never wraps. */
static bool int_result(Operator op, int64_t a, int64_t b, int64_t *r)
{
  switch (op) {
  case OPER_add:
    return !__builtin_add_overflow(a, b, r);
  case OPER_sub:
    return !__builtin_sub_overflow(a, b, r);
  case OPER_mul:
    return !__builtin_mul_overflow(a, b, r);
  case OPER_pow:
    return power(a, b, r);
  case OPER_mod:
    return *r = b == -1 ? 0 : a - floor_div(a, b) * b, true;
  default: /* `//` */
    if (a == INT64_MIN && b == -1) return false;
    return *r = floor_div(a, b), true;
  }
}

static Datum int_arithmetic(Lower *l, Operator op, int64_t a, int64_t b, Span span)
{
  int64_t r;
  if (int_result(op, a, b, &r)) return d_int(r);
  return fail(l, E209, span, "%lld %s %lld does not fit 64 bits", (long long)a, operator_text(op),
              (long long)b);
}

static Datum float_arithmetic(Operator op, double a, double b)
{
  switch (op) {
  case OPER_add:
    return d_float(a + b);
  case OPER_sub:
    return d_float(a - b);
  case OPER_mul:
    return d_float(a * b);
  case OPER_div:
    return d_float(a / b);
  case OPER_floordiv:
    return d_float(floor(a / b));
  case OPER_mod: {
    double r = fmod(a, b);
    return d_float(r != 0 && (r < 0) != (b < 0) ? r + b : r);
  }
  default:
    return d_float(pow(a, b));
  }
}

/* Computes a number. Ints stay ints, except for `/` and negative powers, as in Python. */
static Datum number_arithmetic(Lower *l, Operator op, Datum a, Datum b, Span span)
{
  bool divides = op == OPER_div || op == OPER_floordiv || op == OPER_mod;
  if (divides && d_number(b) == 0)
    return fail(l, E209, span, "%s %s %s divides by zero", d_text(l, a), operator_text(op),
                d_text(l, b));
  bool ints = a.kind == D_int && b.kind == D_int && op != OPER_div;
  if (ints && !(op == OPER_pow && b.as.integer < 0)) {
    Datum r = int_arithmetic(l, op, a.as.integer, b.as.integer, span);
    r.sized = a.sized || b.sized;
    return r;
  }
  return float_arithmetic(op, d_number(a), d_number(b));
}

/* ---- other values ---- */

/* Repeats a list: `[0.5] * 3`. */
static Datum repeat_list(Lower *l, Datum list, int64_t n, Span span)
{
  if (n < 0) n = 0;
  if (list.n && n > MAX_LIST / list.n)
    return fail(l, E209, span, "the result has %lld times %u elements; a list has at most %d",
                (long long)n, list.n, MAX_LIST);
  if (!count_work(l, (uint32_t)n * list.n / ELEMENTS_PER_WORK, span)) return d_of(D_error);
  Datum *at = arena_array(l->arena, Datum, (size_t)n * list.n);
  for (int64_t i = 0; i < n * (int64_t)list.n; i++) at[i] = list.as.list[i % list.n];
  return d_list(at, (uint32_t)n * list.n);
}

/* Concatenates two strings or two lists. The limits of length (of a string: in bytes) and of work
 * stop a loop that doubles its value. */
static Datum join(Lower *l, Datum a, Datum b, Span span)
{
  bool text = a.kind == D_str;
  size_t n = text ? strlen(a.as.text) + strlen(b.as.text) : (size_t)a.n + b.n;
  if (n > MAX_LIST)
    return fail(l, E209, span, "the result has %zu %s; a %s has at most %d", n,
                text ? "bytes" : "elements", text ? "str" : "list", MAX_LIST);
  if (!count_work(l, (uint32_t)n / (text ? BYTES_PER_WORK : ELEMENTS_PER_WORK), span))
    return d_of(D_error);
  if (text) return d_str(arena_printf(l->arena, "%s%s", a.as.text, b.as.text));
  Datum *at = arena_array(l->arena, Datum, a.n + b.n);
  if (a.n) memcpy(at, a.as.list, a.n * sizeof *at);
  if (b.n) memcpy(at + a.n, b.as.list, b.n * sizeof *at);
  return d_list(at, a.n + b.n);
}

/* Compares for equality. This counts as work in proportion to the bytes that it reads. */
static Datum equal(Lower *l, Datum a, Datum b, Span span)
{
  uint32_t most = (MAX_WORK - l->work) * ELEMENTS_PER_WORK + 1, left = most;
  bool same = d_equal(a, b, &left);
  uint32_t work = left ? (most - left) / ELEMENTS_PER_WORK : MAX_WORK;
  return count_work(l, work, span) ? d_bool(same) : d_of(D_error);
}

static Datum ordered(Operator op, double x, double y)
{
  switch (op) {
  case OPER_lt:
    return d_bool(x < y);
  case OPER_gt:
    return d_bool(x > y);
  case OPER_le:
    return d_bool(x <= y);
  default:
    return d_bool(x >= y);
  }
}

/* Compares two values. Only numbers and strings have an order; all known values have equality. */
static Datum compare(Lower *l, Operator op, Datum a, Datum b, Span span)
{
  bool none = a.kind == D_none || b.kind == D_none, late = d_contains(a, D_type_of);
  if (!none && (late || d_contains(b, D_type_of))) {
    fail(l, E307, span, "`%s` needs compile-time values, got %s", operator_text(op),
         d_text(l, late ? a : b));
    diag_help(l->c, "%s", type_of_help);
    return d_of(D_error);
  }
  if (op == OPER_eq || op == OPER_ne) {
    Datum same = equal(l, a, b, span);
    return d_is(same, D_error) ? same : d_bool(same.as.truth == (op == OPER_eq));
  }
  if (d_is_number(a) && d_is_number(b)) return ordered(op, d_number(a), d_number(b));
  if (a.kind != D_str || b.kind != D_str)
    return fail(l, E209, span, "`%s` cannot compare %s and %s", operator_text(op),
                d_kind_text(l, a), d_kind_text(l, b));
  if (!count_work(l, a.n / BYTES_PER_WORK, span)) return d_of(D_error);
  return ordered(op, strcmp(a.as.text, b.as.text), 0);
}

static bool have_bits(Datum a, Datum b)
{
  return a.kind == b.kind && (a.kind == D_bool || a.kind == D_int);
}

/* Computes `&` and `|`. Unlike `and` and `or` they do not short-circuit. */
static Datum bits(Operator op, Datum a, Datum b)
{
  if (a.kind == D_bool)
    return d_bool(op == OPER_bitand ? a.as.truth && b.as.truth : a.as.truth || b.as.truth);
  return d_int(op == OPER_bitand ? a.as.integer & b.as.integer : a.as.integer | b.as.integer);
}

/* Concatenates lists or strings with `+`, repeats a list with `*`. False for other operands. */
static bool on_items(Lower *l, Operator op, Datum a, Datum b, Span span, Datum *out)
{
  if (op == OPER_add && a.kind == b.kind && (a.kind == D_list || a.kind == D_str))
    return *out = join(l, a, b, span), true;
  if (op == OPER_mul && a.kind == D_list && b.kind == D_int)
    return *out = repeat_list(l, a, b.as.integer, span), true;
  if (op == OPER_mul && a.kind == D_int && b.kind == D_list)
    return *out = repeat_list(l, b, a.as.integer, span), true;
  return false;
}

/* Applies an operator to compile-time values. apply_binary() handles tensors. */
Datum number_binary(Lower *l, Operator op, Datum a, Datum b, Span span)
{
  bool of_bits = op == OPER_bitand || op == OPER_bitor, numbers = d_is_number(a) && d_is_number(b);
  Datum d;
  if (op >= OPER_lt && op <= OPER_ne) return compare(l, op, a, b, span);
  if (of_bits && have_bits(a, b)) return bits(op, a, b);
  if (numbers && !of_bits && op != OPER_matmul) return number_arithmetic(l, op, a, b, span);
  if (on_items(l, op, a, b, span, &d)) return d;
  fail(l, E209, span, "`%s` cannot take %s and %s", operator_text(op), d_kind_text(l, a),
       d_kind_text(l, b));
  if (op == OPER_add && (a.kind == D_str || b.kind == D_str))
    diag_help(l->c, "`str(x)` converts a number to a str");
  return d_of(D_error);
}

Datum number_unary(Lower *l, Operator op, Datum a, Span span)
{
  if (op == OPER_neg && a.kind == D_int) {
    if (a.as.integer == INT64_MIN)
      return fail(l, E209, span, "-(%s) does not fit 64 bits", d_text(l, a));
    return d_int(-a.as.integer);
  }
  if (op == OPER_neg && a.kind == D_float) return d_float(-a.as.number);
  if (op == OPER_invert && a.kind == D_bool) return d_bool(!a.as.truth);
  if (op == OPER_invert && a.kind == D_int) return d_int(~a.as.integer);
  return fail(l, E209, span, "`%s` cannot take %s", operator_text(op), d_kind_text(l, a));
}
