/* Layers: ops with weights, pools, dropout. */
#include <inttypes.h>
#include <string.h>
#include "read_ops.h"

static const char *const weight_bias[] = {"weight", "bias"};

bool is_weight(const Value *v)
{
  return v && v->kind == VALUE_weight && !v->turned && v->tensor_kind == TENSOR_trains;
}

uint32_t n_results(Reader *r)
{
  uint32_t n = 1;
  for (uint32_t i = 1; i < r->node->n_output; i++)
    if (result(r, i) && result(r, i)->readers) n = i + 1;
  return n;
}

bool is_all(const Value *v, double number)
{
  if (!v || v->kind != VALUE_weight) return v && v->kind == VALUE_number && v->number == number;
  return v->tensor_kind != TENSOR_trains && is_filled(v->tensor) &&
         tensor_real(v->tensor, 0) == number;
}

bool is_zero(const Value *v)
{
  return is_all(v, 0);
}

/* x @ w.T + b: a Linear layer, or if w is no layer's weight by its name, a call of `linear`. */
static void linear(Reader *r, const char *x, Value *w, Value *b)
{
  if (is_zero(b)) b = NULL;
  bool own = names_layer(w) || !strchr(w->name, '.');
  if (own) {
    const char *made = text(r, "Linear(%" PRId64 ", %" PRId64 "%s)", w->tensor->dims[1],
                            w->tensor->dims[0], b ? "" : ", bias=false");
    made = layer(r, "linear", made, (Value *const[]){w, b}, weight_bias, 2);
    return give(r, text(r, "%s(%s)", made, x));
  }
  give(r, text(r, b ? "linear(%s, %s, %s)" : "linear(%s, %s)", x, ref(r, w), b ? ref(r, b) : ""));
}

/* Where a file stores a matrix as [inputs, outputs], a Linear has it transposed. NULL: PyTorch's
 * net has the matrix so, or another node needs it. The path is that of the bias, "fc.bias". */
static Value *turned_copy(Reader *r, const Value *w, const Value *bias)
{
  const OnnxTensor *t = w->tensor;
  if (!is_weight(w) || t->n_dims != 2 || w->readers != 1 || !onnx_is_float(w->type)) return NULL;
  if (in_state_dict(names_get(&r->listed, w->name))) return NULL;
  int64_t rows = t->dims[0], columns = t->dims[1];
  size_t size = t->raw_data.len / (size_t)(rows * columns);
  Value *made = made_tensor(r, t->data_type, t->raw_data.len, (const int64_t[]){columns, rows}, 2);
  for (int64_t i = 0; i < rows * columns; i++)
    memcpy(made->tensor->raw_data.data + (size_t)((i % columns) * rows + i / columns) * size,
           t->raw_data.data + (size_t)i * size, size);
  const char *dot = bias ? strrchr(bias->name, '.') : NULL;
  if (dot && strcmp(dot, ".bias") == 0)
    made->name = text(r, "%.*s.weight", (int)(dot - bias->name), bias->name);
  else if (!is_made_up(r, w->name))
    made->name = text(r, "%s.weight", name_clean(r, w->name, "linear"));
  return made;
}

/* Whether a product with w may add c in a Linear; the outputs are an axis of w. */
static bool is_bias(const Value *c, const Value *w, uint32_t axis)
{
  int64_t n;
  bool matrix = rank_of(w) == 2 && size_of(w, axis, &n);
  if (!c || is_zero(c)) return matrix;
  return matrix && is_weight(c) && c->tensor->n_dims == 1 && c->tensor->dims[0] == n;
}

void read_gemm(Reader *r)
{
  Value *a = in(r, 0), *w = in(r, 1), *c = in(r, 2);
  if (!w) return refuse(r, "without its second input");
  double alpha = attr_real(r, "alpha", 1), beta = attr_real(r, "beta", 1);
  bool t = attr_number(r, "transB", 0) != 0, scaled = alpha != 1 || (c && beta != 1);
  const char *x = text(r, "%s%s", whole_ref(r, a), attr_number(r, "transA", 0) ? ".t()" : "");
  if (!t && !scaled && is_bias(c, w, 1)) {
    Value *own = w->turned ? w->turned : turned_copy(r, w, c);
    if (own) w = own, t = true;
  }
  if (t && !scaled && is_weight(w) && is_bias(c, w, 0)) return linear(r, x, w, c);
  const char *product = text(r, "%s @ %s%s", x, whole_ref(r, w), t ? ".t()" : ""),
             *factor = beta != 1 ? text(r, "%s * ", float_text(r, beta)) : "";
  if (alpha != 1) product = text(r, "%s * (%s)", float_text(r, alpha), product);
  give(r, c && !is_zero(c) ? text(r, "%s + %s%s", product, factor, ref(r, c)) : product);
}

/* Returns the node Add that adds a vector to the product at work, if it is the only reader. */
static const OnnxNode *bias_node(Reader *r, int64_t outputs, Value **bias)
{
  const Value *y = result(r, 0);
  if (!y || y->readers != 1) return NULL;
  for (size_t i = r->index + 1; i < r->nodes->n_node && i < r->index + 4; i++) {
    const OnnxNode *n = r->nodes->node[i];
    if (!n->op_type || strcmp(n->op_type, "Add") != 0 || n->n_input != 2) continue;
    for (size_t k = 0; k < 2; k++) {
      if (!n->input[k] || strcmp(n->input[k], y->name) != 0) continue;
      *bias = value_named(r, n->input[1 - k]);
      bool fits =
          is_weight(*bias) && (*bias)->tensor->n_dims == 1 && (*bias)->tensor->dims[0] == outputs;
      return fits ? n : NULL;
    }
  }
  return NULL;
}

void read_matmul(Reader *r)
{
  Value *a = in(r, 0), *w = in(r, 1), *bias = NULL;
  if (!w) return refuse(r, "without its second input");
  if (read_attention_product(r)) return;
  int64_t outputs = 0;
  const OnnxNode *add = size_of(w, -1, &outputs) ? bias_node(r, outputs, &bias) : NULL;
  Value *own = w->turned ? w->turned : turned_copy(r, w, add ? bias : NULL);
  if (!own) return give(r, text(r, "%s @ %s", whole_ref(r, a), whole_ref(r, w)));
  linear(r, whole_ref(r, a), own, add ? bias : NULL);
  if (add) result(r, 0)->bias_of = add;
}
