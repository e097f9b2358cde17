/* Part of pass decode: the elements of masks for keys after the position, Note [ahead].
 *
 * A mask is computed here, row by row, in doubles that are rounded as its types say. It takes for
 * granted that a mask of more than MOST_ROWS positions treats all of them like those that are
 * looked at: the first ones, the last ones, and every n-th in between. */
#include "decode.h"
#include "compiler/rules/rules.h"
#include <math.h>
#include <string.h>

enum { MOST_ROWS = 1024, EDGE = 64 };

/* ---- elements of constants ---- */

typedef struct Element { /* an element: its index along each axis */
  int64_t at[MAX_RANK];
} Element;

static bool element(Decode *d, uint32_t id, const Element *p, double *out);

static bool of_two(const Node *n, double a, double b, double *out)
{
  switch (n->op) {
  case OP_add:
    *out = a + b;
    break;
  case OP_sub:
    *out = a - b;
    break;
  case OP_mul:
    *out = a * b;
    break;
  case OP_div:
    *out = a / b;
    break;
  case OP_floor_divide:
    *out = floor(a / b);
    break;
  case OP_remainder:
    *out = a - b * floor(a / b);
    break;
  case OP_minimum:
    *out = fmin(a, b);
    break;
  case OP_maximum:
    *out = fmax(a, b);
    break;
  case OP_eq:
    *out = a == b;
    break;
  case OP_ne:
    *out = a != b;
    break;
  case OP_lt:
    *out = a < b;
    break;
  case OP_le:
    *out = a <= b;
    break;
  case OP_gt:
    *out = a > b;
    break;
  case OP_ge:
    *out = a >= b;
    break;
  case OP_logical_and:
    *out = (int64_t)a & (int64_t)b;
    break;
  case OP_logical_or:
    *out = (int64_t)a | (int64_t)b;
    break;
  default:
    return false;
  }
  return true;
}

static bool of_one(const Node *n, double a, double *out)
{
  switch (n->op) {
  case OP_cast:
    *out = n->dtype == AMPC_BOOL ? a != 0 : dtype_is_integer(n->dtype) ? trunc(a) : a;
    break;
  case OP_full:
  case OP_copy:
  case OP_expand:
    *out = a;
    break;
  case OP_neg:
    *out = -a;
    break;
  case OP_abs:
    *out = fabs(a);
    break;
  case OP_log:
    *out = log(a);
    break;
  case OP_logical_not:
    *out = a == 0;
    break;
  default:
    return false;
  }
  return true;
}

/* Computes an element of input i, whose axes are counted from the right. */
static bool operand(Decode *d, const Node *n, uint32_t i, const Element *p, double *out)
{
  const Node *x = &d->old[n->in[i].id];
  Element own = {{0}};
  if (n->op == OP_full) return element(d, n->in[i].id, &own, out);
  for (uint32_t k = 0; k < x->rank; k++)
    own.at[k] = x->dim[k] == 1 ? 0 : p->at[k + n->rank - x->rank];
  return element(d, n->in[i].id, &own, out);
}

static int64_t flat(const Node *n, const Element *p)
{
  int64_t at = 0;
  for (uint32_t k = 0; k < n->rank; k++) at = at * n->dim[k] + p->at[k];
  return at;
}

/* Computes an element of a view or move. */
static bool moved(Decode *d, const Node *n, const Element *p, double *out)
{
  const Node *x = &d->old[n->in[0].id];
  Element own = *p;
  if (n->op == OP_reshape) {
    int64_t at = flat(n, p);
    for (uint32_t k = x->rank; k-- > 0; at /= x->dim[k]) own.at[k] = at % x->dim[k];
  } else if (op_has(n, T_permutes)) {
    for (uint32_t k = 0; k < n->rank; k++) own.at[ir_permuted_axis(n, k)] = p->at[k];
  } else if (n->op == OP_slice) {
    int64_t dim = attr_int(n, "dim");
    own.at[dim] = attr_int(n, "start") + p->at[dim] * attr_int(n, "step");
  } else {
    return false;
  }
  return element(d, n->in[0].id, &own, out);
}

static bool element(Decode *d, uint32_t id, const Element *p, double *out)
{
  const Node *n = &d->old[id];
  double a, b, c;
  bool good = false;
  if (n->op == OP_number || n->op == OP_integer) {
    *out = attr_as_number(n, 0);
    return true;
  }
  if (n->op == OP_indices) {
    *out = (double)flat(n, p);
    return true;
  }
  if (op_of(n)->tmpl == TMPL_alias || op_has(n, T_permutes) || n->op == OP_slice)
    return moved(d, n, p, out);
  if (n->op == OP_where) return operand(d, n, 0, p, &c) && operand(d, n, c != 0 ? 1 : 2, p, out);
  if (n->op == OP_full_like || n->op == OP_like) return operand(d, n, 1, p, out);
  if (n->n_in == 1) good = operand(d, n, 0, p, &a) && of_one(n, a, out);
  if (n->n_in == 2)
    good = operand(d, n, 0, p, &a) && operand(d, n, 1, p, &b) && of_two(n, a, b, out);
  if (good && dtype_is_float(n->dtype)) *out = rule_rounded(n->dtype, *out);
  return good;
}

/* Looks at all elements of a row of positions `now` with a key after it. */
static bool row_ahead(Decode *d, uint32_t id, uint32_t now, uint32_t keys, int64_t row, bool *any,
                      double *out)
{
  const Node *n = &d->old[id];
  int64_t others = ir_elements(n) / n->dim[now] / n->dim[keys];
  for (int64_t k = row + 1; k < n->dim[keys]; k++)
    for (int64_t o = 0; o < others; o++) {
      Element p;
      double v;
      int64_t rest = o;
      for (uint32_t i = n->rank; i-- > 0;) {
        bool own = i != now && i != keys;
        p.at[i] = i == now ? row : i == keys ? k : rest % n->dim[i];
        if (own) rest /= n->dim[i];
      }
      if (!element(d, id, &p, &v) || (*any && v != *out)) return false;
      *any = true;
      *out = v;
    }
  return true;
}

static bool look(Decode *d, uint32_t id, uint32_t now, uint32_t keys, double *out)
{
  int64_t rows = d->length, step = rows <= MOST_ROWS ? 1 : rows / (MOST_ROWS / 2);
  bool any = false, same = true;
  for (int64_t row = 0; row < rows && same; row++) {
    bool edge = row < EDGE || row >= rows - EDGE;
    if (edge || row % step == 0) same = row_ahead(d, id, now, keys, row, &any, out);
  }
  return same && any;
}

bool ahead_of_const(Decode *d, uint32_t id, uint32_t now, uint32_t keys, double *out)
{
  Info *x = &d->info[id];
  if (!x->looked || x->now != now || x->keys != keys) {
    x->is_ahead = look(d, id, now, keys, &x->ahead);
    x->looked = true;
    x->now = now;
    x->keys = keys;
  }
  *out = x->ahead;
  return x->is_ahead;
}

/* ---- elementwise nodes with tokens ---- */

/* Finds what input i is ahead. */
static bool input_ahead(Decode *d, const Node *n, uint32_t i, uint32_t now, uint32_t keys,
                        double *out)
{
  const Node *x = &d->old[n->in[i].id];
  const Info *own = &d->info[n->in[i].id];
  uint32_t missing = (uint32_t)n->rank - x->rank;
  *out = own->ahead;
  if (own->kind == NOW) return own->is_ahead;
  if (ir_elements(x) == 1) {
    Element p = {{0}};
    return element(d, n->in[i].id, &p, out);
  }
  bool both =
      now >= missing && keys >= missing && x->dim[now - missing] > 1 && x->dim[keys - missing] > 1;
  return both && ahead_of_const(d, n->in[i].id, now - missing, keys - missing, out);
}

/* Finds what a node is ahead from its inputs, of which some are not known. Finite numbers are taken
 * for granted in what tokens compute. */
static bool combine(const Node *n, const bool *known, const double *in, double *out)
{
  switch (n->op) {
  case OP_where:
    *out = in[known[0] && in[0] != 0 ? 1 : 2];
    return known[0] && known[in[0] != 0 ? 1 : 2];
  case OP_add:
    for (int i = 0; i < 2; i++)
      if (known[i] && in[i] <= FAR_BELOW && !known[1 - i]) return *out = in[i], true;
    break;
  case OP_sub:
    if (known[0] && in[0] <= FAR_BELOW && !known[1]) return *out = in[0], true;
    break;
  case OP_mul:
  case OP_logical_and:
    if ((known[0] && in[0] == 0) || (known[1] && in[1] == 0)) return *out = 0, true;
    break;
  case OP_div:
    if (known[0] && in[0] == 0) return *out = 0, true;
    break;
  case OP_exp:
    *out = exp(in[0]);
    return known[0];
  default:
    break;
  }
  if (n->n_in == 1) return known[0] && of_one(n, in[0], out);
  return n->n_in == 2 && known[0] && known[1] && of_two(n, in[0], in[1], out);
}

void ahead_of_map(Decode *d, uint32_t id, int keys)
{
  const Node *n = &d->old[id];
  Info *x = &d->info[id];
  bool known[3] = {false};
  double in[3] = {0};
  if (keys < 0 || n->n_in > 3) return;
  for (uint32_t i = 0; i < n->n_in; i++)
    known[i] = n->in[i].id && input_ahead(d, n, i, x->now, (uint32_t)keys, &in[i]);
  x->is_ahead = combine(n, known, in, &x->ahead);
}
