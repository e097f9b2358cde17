/* Ops of several nodes: PyTorch's exporter writes attention as products and a softmax, and SiLU as
 * a product. The nodes before the last one become steps that nothing needs. */
#include <math.h>
#include <string.h>
#include "read_ops.h"

/* ---- walking back ---- */

/* If a node of this op makes the value, returns it, and its inputs. */
static const OnnxNode *maker(Reader *r, const Value *v, const char *op, Value *input[3])
{
  const OnnxNode *n = v && v->kind == VALUE_tensor ? v->maker : NULL;
  if (!n || strcmp(n->op_type, op) != 0) return NULL;
  for (size_t i = 0; i < 3; i++) input[i] = i < n->n_input ? value_named(r, n->input[i]) : NULL;
  return n;
}

/* Takes away a factor that is a number. */
static Value *unscaled(Reader *r, Value *v, double *scale)
{
  Value *x[3];
  if (maker(r, v, "Mul", x) && x[0] && x[1]) {
    bool first = x[0]->kind == VALUE_number, second = x[1]->kind == VALUE_number;
    if (first || second) *scale *= x[first ? 0 : 1]->number;
    if (first || second) return x[first ? 1 : 0];
  }
  if (maker(r, v, "Div", x) && x[1] && x[1]->kind == VALUE_number) {
    *scale /= x[1]->number;
    return x[0];
  }
  return v;
}

/* Whether the node exchanges the last two of `rank` axes. */
static bool swaps_last(const OnnxNode *n, size_t rank)
{
  const OnnxAttribute *a = n->n_attribute == 1 ? n->attribute[0] : NULL;
  if (!a || a->n_ints != rank) return false;
  for (size_t i = 0; i < rank; i++) {
    size_t from = i + 2 < rank ? i : i + 2 == rank ? rank - 1 : rank - 2;
    if (a->ints[i] != (int64_t)from) return false;
  }
  return true;
}

/* If v is x of four axes with the last two exchanged, returns x. PyTorch may do it in three axes:
 * Reshape, Transpose, Reshape. */
static Value *transposed(Reader *r, Value *v)
{
  Value *x[3], *flat[3], *whole[3];
  const OnnxNode *n = maker(r, v, "Transpose", x);
  if (n && swaps_last(n, 4)) return x[0];
  if (!maker(r, v, "Reshape", x)) return NULL;
  n = maker(r, x[0], "Transpose", flat);
  if (!n || !swaps_last(n, 3) || !maker(r, flat[0], "Reshape", whole)) return NULL;
  const Value *shape = whole[1];
  bool fits = rank_of(whole[0]) == 4 && shape && shape->kind == VALUE_items && shape->n == 3;
  return fits && is_size(whole[0], 2, shape->item[1]) && is_size(whole[0], 3, shape->item[2])
             ? whole[0]
             : NULL;
}

/* ---- attention ---- */

typedef struct Heads {
  Value *query, *key, *mask; /* mask NULL: none */
  double scale, dropout;
} Heads;

static bool read_scores(Reader *r, Value *v, Heads *h)
{
  Value *x[3];
  h->scale = 1;
  v = unscaled(r, v, &h->scale);
  if (!maker(r, v, "MatMul", x)) return false;
  h->query = unscaled(r, x[0], &h->scale);
  h->key = transposed(r, unscaled(r, x[1], &h->scale));
  return h->key != NULL;
}

/* If v is x with 0 instead of NaN, returns x, else v. */
static Value *without_nan(Reader *r, Value *v)
{
  Value *x[3], *y[3];
  bool zeros = maker(r, v, "Where", x) && is_zero(x[1]) && maker(r, x[0], "IsNaN", y);
  return zeros && y[0] == x[2] ? x[2] : v;
}

/* dropout(softmax(scores + mask)), perhaps with zeros for rows that are masked as a whole. */
static bool read_weights(Reader *r, Value *v, Heads *h)
{
  Value *x[3], *y[3];
  v = without_nan(r, v);
  if (maker(r, v, "Dropout", x)) {
    if (!x[1] || x[1]->kind != VALUE_number) return false;
    h->dropout = x[1]->number;
    v = x[0];
  }
  v = without_nan(r, v);
  const OnnxNode *n = maker(r, v, "Softmax", x);
  if (!n || rank_of(x[0]) != 4) return false;
  if (n->n_attribute != 1 || (n->attribute[0]->i != -1 && n->attribute[0]->i != 3)) return false;
  if (read_scores(r, x[0], h)) return true;
  if (!maker(r, x[0], "Add", y)) return false;
  h->mask = y[1];
  if (read_scores(r, y[0], h)) return true;
  h->mask = y[0];
  return read_scores(r, y[1], h);
}

static bool four_axes(const Value *v)
{
  return v && v->kind == VALUE_tensor && rank_of(v) == 4;
}

bool read_attention_product(Reader *r)
{
  Heads h = {0};
  Value *v = in(r, 1);
  int64_t width;
  if (!four_axes(v) || !read_weights(r, in(r, 0), &h) || !four_axes(h.query) || !four_axes(h.key))
    return false;
  if (h.mask && h.mask->kind == VALUE_number) return false;
  const char *more = h.mask ? text(r, ", attn_mask=%s", ref(r, h.mask)) : "";
  if (h.dropout > 0) more = text(r, "%s, dropout_p=%s", more, float_text(r, h.dropout));
  bool usual = size_of(h.query, 3, &width) && fabs(h.scale * sqrt((double)width) - 1) < 1e-6;
  if (!usual) more = text(r, "%s, scale=%s", more, float_text(r, h.scale));
  give(r, text(r, "scaled_dot_product_attention(%s, %s, %s%s)", ref(r, h.query), ref(r, h.key),
               ref(r, v), more));
  return true;
}

/* ---- SiLU: x sigmoid(x) ---- */

bool read_silu(Reader *r)
{
  Value *x[3];
  for (size_t i = 0; i < 2; i++) {
    if (!maker(r, in(r, i), "Sigmoid", x) || x[0] != in(r, 1 - i)) continue;
    give(r, text(r, "silu(%s)", ref(r, x[0])));
    return true;
  }
  return false;
}
