/* Elementwise ops, reductions, activations. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "read_ops.h"

typedef void ReadOp(Reader *r);

static ReadOp *function_of(const char *op)
{
#define READ(name, function, file)                                                                 \
  if (strcmp(op, #name) == 0) return function;
#include "read_ops.def"
  return NULL;
}

/* Refuses a node with inputs or attributes that its function does not know: they may change the
 * result. */
static void check_known(Reader *r)
{
  static const char *const harmless[] = {"saturate", "stash_type", "storage_order",   "seed",
                                         "dtype",    "spatial",    "consumed_inputs", "keepdims"};
  const OnnxNode *n = r->node;
  for (size_t i = 0; i < n->n_input && i < 64; i++)
    if (!(r->asked_inputs >> i & 1) && n->input[i] && *n->input[i])
      return refuse(r, text(r, "with input %zu", i));
  for (size_t i = 0; i < n->n_attribute && i < 64; i++) {
    bool known = (r->asked_attributes >> i & 1) || !n->attribute[i]->name;
    for (size_t k = 0; !known && k < sizeof harmless / sizeof *harmless; k++)
      known = strcmp(n->attribute[i]->name, harmless[k]) == 0;
    if (!known) return refuse(r, text(r, "with %s", n->attribute[i]->name));
  }
}

void read_op(Reader *r)
{
  const char *op = r->node->op_type, *domain = r->node->domain;
  bool standard = !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
  ReadOp *function = standard ? function_of(op) : NULL;
  for (size_t i = 0; i < r->node->n_input; i++)
    if (r->node->input[i] && *r->node->input[i] && !value_named(r, r->node->input[i])) return;
  if (!in(r, 0) && strcmp(op, "Constant") != 0) return refuse(r, "without its first input");
  if (standard && read_folded(r)) return;
  r->asked_inputs = r->asked_attributes = 0;
  if (function)
    function(r);
  else if (!standard || !read_prelude(r))
    return refuse(r, "");
  if (!r->dropped && strcmp(op, "Constant") != 0) check_known(r);
}

/* ---- two operands ---- */

static double computed(char op, double a, double b)
{
  switch (op) {
  case 'A':
    return a + b;
  case 'S':
    return a - b;
  case 'M':
    return a * b;
  case 'D':
    return a / b;
  case 'P':
    return pow(a, b);
  case 'x':
    return fmax(a, b);
  default:
    return fmin(a, b);
  }
}

/* The letter of an op: its first one, but Max x, Min n, Mod d. */
static char letter_of(const char *op)
{
  return op[0] != 'M' || op[1] == 'u' ? op[0] : op[2];
}

/* Division and remainder of ONNX round towards 0, those of jobs down. */
static void whole_division(Reader *r, char letter, const Value *a, const Value *b)
{
  const char *x = operand(r, 0), *y = operand(r, 1), *by = text(r, "abs(%s)", y),
             *sign = text(r, " * sign(%s)", y);
  bool counts = is_known(b) && b->n == 1 && b->item[0].n > 0;
  if (counts) by = y, sign = "";
  if (a->type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT8)
    return give(r, text(r, "%s %s %s", x, letter == 'D' ? "//" : "%", y));
  if (letter == 'D') return give(r, text(r, "sign(%s)%s * (abs(%s) // %s)", x, sign, x, by));
  give(r, text(r, "sign(%s) * (abs(%s) %% %s)", x, x, by));
}

/* x + 0, x * 1 and x & true, which exporters write for positions and masks */
static bool is_neutral(char op, const Value *x, const Value *number)
{
  bool scalar = x->kind == VALUE_tensor && is_known(number) && number->shape->rank == 0 &&
                x->type == number->type;
  return scalar && ((op == 'A' && number->item[0].n == 0) ||
                    (op == 'M' && number->item[0].n == 1) || (op == '&' && number->item[0].n != 0));
}

static bool mixes_types(const Value *a, const Value *b)
{
  bool tensors = a->kind == VALUE_tensor && b->kind == VALUE_tensor && a->type && b->type;
  return tensors && onnx_is_float(a->type) != onnx_is_float(b->type);
}

/* ONNX adds no floats and bools. But PyTorch 2.15 adds the mask of attention with dropout in this
 * way if the opset is 23. */
static void read_mask(Reader *r, const Value *scores, const Value *mask)
{
  const char *classes = onnx_metadata(r->arena, r->node, "pkg.torch.onnx.class_hierarchy");
  bool attention = classes && strstr(classes, "aten.scaled_dot_product_attention");
  if (!attention || mask->type != ONNX__TENSOR_PROTO__DATA_TYPE__BOOL || *r->node->op_type != 'A')
    return refuse(r, "of floats and integers, which ONNX does not allow");
  give(r, text(r, "where(%s, %s, -inf)", ref(r, mask), ref(r, scores)));
}

/* Reads what several nodes together mean, or a node that does nothing. */
static bool read_known_pair(Reader *r, char letter, Value *a, Value *b)
{
  if (read_drawn(r) || (letter == 'M' && read_silu(r))) return true;
  bool bias = letter == 'A' && (a->bias_of == r->node || b->bias_of == r->node);
  if (bias) return give_value(r, a->bias_of ? a : b), true;
  if (is_neutral(letter, a, b)) return give_value(r, a), true;
  if (mixes_types(a, b)) return read_mask(r, a, b), true;
  bool numbers = a->kind == VALUE_number && b->kind == VALUE_number && letter != 'd' &&
                 (a->n == 0 || b->n == 0);
  const Value *shape = a->n ? a : b;
  if (numbers) give_number(r, computed(letter, a->number, b->number), shape->item, shape->n);
  return numbers;
}

void read_binary(Reader *r)
{
  Value *a = in(r, 0), *b = in(r, 1);
  char letter = letter_of(r->node->op_type);
  bool fmod = attr_number(r, "fmod", 0) != 0;
  if (!b) return refuse(r, "without its second input");
  if (read_known_pair(r, letter, a, b)) return;
  int32_t type = a->type ? a->type : b->type;
  bool whole = !onnx_is_float(type);
  if ((letter == 'D' && whole) || (letter == 'd' && fmod)) return whole_division(r, letter, a, b);
  if (letter == 'd') return give(r, text(r, "%s %% %s", operand(r, 0), operand(r, 1)));
  if (letter == 'P' && whole && b->type != type && type_word(type))
    return give(r, text(r, "(%s ** %s).to(%s)", operand(r, 0), operand(r, 1), type_word(type)));
  read_prelude(r);
}

/* Max, Min, Sum, Mean of any number of operands. */
void read_several(Reader *r)
{
  const char *op = r->node->op_type, *all = operand(r, 0);
  size_t n = r->node->n_input;
  if (n == 1) return give_value(r, in(r, 0));
  if (n > 200) return refuse(r, "of more than 200 operands");
  if (n == 2 && op[0] == 'M' && op[1] != 'e') return read_binary(r);
  for (size_t i = 1; i < n; i++) {
    const char *next = operand(r, i);
    if (op[0] == 'S' || op[1] == 'e')
      all = text(r, "%s + %s", all, next);
    else
      all = text(r, "%s(%s, %s)", op[1] == 'a' ? "maximum" : "minimum", all, next);
  }
  give(r, op[1] == 'e' ? text(r, "(%s) / %zu", all, n) : all);
}

/* Less, Equal, And: perhaps steps of a dropout, or a mask that does nothing. */
void read_compare(Reader *r)
{
  const Value *a = in(r, 0), *b = in(r, 1);
  if (read_drawn(r)) return;
  bool both = b && r->node->op_type[0] == 'A';
  if (both && (is_neutral('&', a, b) || is_neutral('&', b, a)))
    return give_value(r, is_neutral('&', a, b) ? a : b);
  read_prelude(r);
}

static double negative(double x)
{
  return -x;
}

/* Computes a number of a number. */
void read_unary(Reader *r)
{
  static const struct {
    const char *op;
    double (*of)(double);
  } functions[] = {{"Sqrt", sqrt}, {"Floor", floor}, {"Ceil", ceil}, {"Neg", negative}};
  Value *x = in(r, 0);
  for (size_t i = 0; x->kind == VALUE_number && i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i].op, r->node->op_type) == 0)
      return give_number(r, functions[i].of(x->number), x->item, x->n);
  read_prelude(r);
}

/* ---- reductions ---- */

typedef struct Reduction {
  const char *onnx, *form; /* # stands for the axes and keepdim */
  bool one;                /* the function takes only one axis */
  const char *scalar;      /* the function of a tensor without axes; NULL: it is the tensor */
} Reduction;
static const Reduction reductions[] = {{"ReduceMean", "$.mean(#)", false, NULL},
                                       {"ReduceSum", "$.sum(#)", false, NULL},
                                       {"ReduceMax", "$.amax(#)", false, NULL},
                                       {"ReduceMin", "$.amin(#)", false, NULL},
                                       {"ReduceProd", "$.prod(#)", true, NULL},
                                       {"ReduceL1", "norm($, 1.0, #)", false, "abs"},
                                       {"ReduceL2", "norm($, 2.0, #)", false, "abs"},
                                       {"ReduceSumSquare", "sum(square($), #)", false, "square"},
                                       {"ReduceLogSum", "log(sum($, #))", false, "log"},
                                       {"ReduceLogSumExp", "logsumexp($, #)", true, NULL}};

static const char *reduced(Reader *r, const char *form, const char *x, const Item *axes, uint32_t n,
                           bool keep)
{
  const char *which = n == 0   ? ""
                      : n == 1 ? list_text(r, axes, 1)
                               : text(r, "[%s]", list_text(r, axes, n));
  const char *all = text(r, "%s%s%s", which, n && keep ? ", " : "", keep ? "keepdim=true" : "");
  const char *mark = strchr(form, '#'), *end = mark;
  if (!*all && mark[-1] == ' ') mark -= 2;
  size_t before = strcspn(form, "$");
  return text(r, "%.*s%s%.*s%s%s", (int)before, form, x, (int)((size_t)(mark - form) - before - 1),
              form + before + 1, all, end + 1);
}

/* Whether the axes are the last two of an image. */
static bool is_global_pool(const Value *x, const Item *axes, uint32_t n)
{
  int64_t a = 0, b = 0;
  if (n == 2) a = axis_of(x, axes[0].n), b = axis_of(x, axes[1].n);
  return n == 2 && rank_of(x) == 4 && ((a == 2 && b == 3) || (a == 3 && b == 2));
}

static int by_size(const void *a, const void *b)
{
  const Item *x = a, *y = b;
  return x->n < y->n ? -1 : x->n > y->n;
}

/* Reads the axes of a reduction, from 0 on in rising order; none are listed: all. */
static bool read_reduced(Reader *r, int64_t rank, Item **axes, uint32_t *n)
{
  read_axes(r, 1, axes, n);
  if (r->dropped) return false;
  for (uint32_t i = 0; i < *n; i++) {
    (*axes)[i].n += (*axes)[i].n < 0 ? rank : 0;
    if ((*axes)[i].n < 0 || (*axes)[i].n >= rank)
      return refuse(r, "along an axis that is out of range"), false;
  }
  qsort(*axes, *n, sizeof **axes, by_size);
  return true;
}

/* Jobs sum such integers in i64. */
static bool is_narrow(const Value *x)
{
  return x->type == ONNX__TENSOR_PROTO__DATA_TYPE__INT32 ||
         x->type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
}

static const char *reduced_text(Reader *r, const Reduction *how, const Value *x, Item *axes,
                                uint32_t n, bool keep)
{
  const char *all = whole_ref(r, x), *form = how->form;
  if (x->type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL)
    form = how == &reductions[2] ? "any($, #)" : "all($, #)";
  if (rank_of(x) == 0) return how->scalar ? text(r, "%s(%s)", how->scalar, all) : all;
  bool one = how->one || *form == 'a'; /* along one axis after the other */
  if (n == 0 && (keep || one))
    for (; n < rank_of(x); n++) axes[n].n = n;
  for (uint32_t i = n; one && i-- > 0;) all = reduced(r, form, all, &axes[i], 1, keep);
  if (!one) all = reduced(r, form, all, axes, n, keep);
  return is_narrow(x) ? text(r, "%s.to(%s)", all, type_word(x->type)) : all;
}

void read_reduce(Reader *r)
{
  Value *x = in(r, 0);
  Item *axes;
  uint32_t n = 0, row = 0;
  int64_t rank = rank_of(x);
  bool keep = attr_number(r, "keepdims", 1) != 0,
       noop = attr_number(r, "noop_with_empty_axes", 0) != 0;
  while (strcmp(reductions[row].onnx, r->node->op_type) != 0) row++;
  if (!read_reduced(r, rank, &axes, &n)) return;
  if (n == 0 && noop)
    return row < 5 ? give_value(r, x) : refuse(r, "with noop_with_empty_axes=1 and no axes");
  if (row == 0 && keep && is_global_pool(x, axes, n))
    return give(r, text(r, "adaptive_avg_pool2d(%s, 1)", whole_ref(r, x)));
  give(r, reduced_text(r, &reductions[row], x, axes, n, keep));
}

/* ---- activations ---- */

/* Before opset 13 over all axes from one on. */
void read_softmax(Reader *r)
{
  int64_t axis = attr_number(r, "axis", r->opset < 13 ? 1 : -1);
  Value *x = in(r, 0);
  const char *name = r->node->op_type[0] == 'L' ? "log_softmax" : "softmax";
  bool last = axis == -1 || axis == rank_of(x) - 1;
  if (last || r->opset >= 13)
    return give(r, text(r, "%s(%s, %" PRId64 ")", name, whole_ref(r, x), axis));
  axis = axis_of(x, axis);
  give(r, text(r, "%s(%s.flatten(%" PRId64 "), -1).reshape(%s.shape)", name, whole_ref(r, x), axis,
               whole_ref(r, x)));
}

/* An input, or an attribute of older versions; `missing` if neither is there. */
static bool bound(Reader *r, size_t i, const char *name, double missing, double *out)
{
  Value *v = in(r, i);
  if (v) return one_number(v, out);
  *out = attr_real(r, name, missing);
  return true;
}

void read_clip(Reader *r)
{
  double low, high;
  const char *x = whole_ref(r, in(r, 0));
  const Value *min = in(r, 1), *max = in(r, 2);
  if (!bound(r, 1, "min", -INFINITY, &low) || !bound(r, 2, "max", INFINITY, &high))
    return refuse(r, "with computed bounds");
  bool whole = (min || max) && (!min || is_known(min)) && (!max || is_known(max)); /* of integers */
  if (low == 0 && high == 6 && !whole) return give(r, text(r, "relu6(%s)", x));
  const char *from = min && whole ? item_text(r, min->item[0]) : float_text(r, low),
             *to = max && whole ? item_text(r, max->item[0]) : float_text(r, high);
  if (isinf(high)) return give(r, text(r, "clamp(%s, min=%s)", x, from));
  if (isinf(low)) return give(r, text(r, "clamp(%s, max=%s)", x, to));
  give(r, text(r, "clamp(%s, %s, %s)", x, from, to));
}

void read_gelu(Reader *r)
{
  bool tanh = strcmp(attr_word(r, "approximate", "none"), "tanh") == 0;
  give(r, text(r, "gelu(%s%s)", whole_ref(r, in(r, 0)), tanh ? ", approximate=\"tanh\"" : ""));
}

void read_hard_sigmoid(Reader *r)
{
  double alpha = attr_real(r, "alpha", 0.2), beta = attr_real(r, "beta", 0.5);
  const char *x = whole_ref(r, in(r, 0));
  if ((float)alpha == 1.0f / 6 && beta == 0.5) return give(r, text(r, "hardsigmoid(%s)", x));
  give(r, text(r, "clamp(%s * %s + %s, 0.0, 1.0)", x, float_text(r, alpha), float_text(r, beta)));
}
