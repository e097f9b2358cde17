/* Shape rules: leaves, elementwise ops, reductions, rows, effects. A rule sets dims and dtype of a
 * node from its inputs and reports mistakes of the user. The dtype follows from the input types by
 * ordinary promotion. Once pass precision has cast the inputs, it is the final type. */
#include "rules.h"
#include "compiler/graph/columns.h"
#include "compiler/graph/param_parts.h"
#include "compiler/graph/ranges.h"
#include "compiler/graph/shares.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>

/* ---- shared with the other shape files ---- */

/* 2^48 elements of at most 8 bytes are 2^51 bytes. Products of sizes and strides stay far below
 * 2^63, and no machine has that much memory. */
#define MOST_ELEMENTS ((int64_t)1 << 48)

/* Rejects too many elements, and an axis of size 0: kernels divide by sizes. */
static bool check_elements(Compile *c, const Node *n)
{
  int64_t elements = 1;
  for (uint32_t i = 0; i < n->rank; i++) {
    if (n->dim[i] < 1 || n->dim[i] > MOST_ELEMENTS / elements)
      return diag_error(c, E311, n->span, "%s makes a tensor with %s elements: %s", op_of(n)->name,
                        n->dim[i] < 1 ? "no" : "too many", ir_dims_text(c, n));
    elements *= n->dim[i];
  }
  return true;
}

bool rule_set_dims(Compile *c, Node *n, uint32_t rank, const int64_t *dim)
{
  if (rank > MAX_RANK)
    return diag_error(c, E311, n->span, "%s makes a tensor of %u axes; the maximum is %d",
                      op_of(n)->name, rank, MAX_RANK);
  n->rank = (uint8_t)rank;
  memset(n->dim, 0, sizeof n->dim);
  for (uint32_t i = 0; i < rank; i++) n->dim[i] = dim[i];
  return check_elements(c, n);
}

bool rule_like(Node *n, const Node *from, DType dtype)
{
  n->rank = from->rank;
  memcpy(n->dim, from->dim, sizeof n->dim);
  n->dtype = dtype;
  return true;
}

/* Returns the first name of the text that is not called; NULL if there is none. */
static const char *first_variable(Compile *c, const char *at, const char *end)
{
  for (size_t n; at < end; at += n + 1) {
    n = name_size(at);
    if (n && at[n] != '(' && !isdigit((unsigned char)*at)) return arena_strndup(c->arena, at, n);
  }
  return NULL;
}

const char *rule_variable(Compile *c, const Node *n)
{
  Place p = diag_place(c, n->span);
  if (!p.source) return "x";
  const char *text = p.source->text + (n->span.start - p.source->base);
  const char *end = text + (n->span.end - n->span.start);
  const char *open = memchr(text, '(', (size_t)(end - text));
  const char *name = open ? first_variable(c, open, end) : NULL;
  if (!name) name = first_variable(c, text, end); /* `x.view(-1)` */
  return name ? name : "x";
}

bool rule_need_float(Compile *c, const Node *n, uint32_t i)
{
  const Node *in = ir_in(c, n, i);
  if (dtype_is_float(in->dtype)) return true;
  diag_error(c, E406, n->span, "%s needs float[..] as %s, got %s", op_of(n)->name,
             op_of(n)->signature.input[i].name, ir_type_text(c, in));
  return diag_help(c, "`.to(f32)`");
}

/* Returns the size of `in` along an axis of a result with this rank. Shapes are aligned at the
 * right: with rank 3, [4] is [1, 1, 4]. */
static int64_t aligned_dim(const Node *in, uint32_t rank, uint32_t axis)
{
  uint32_t missing = rank - in->rank;
  return axis < missing ? 1 : in->dim[axis - missing];
}

static bool broadcast_error(Compile *c, const Node *n, const Node *a, const Node *b, uint32_t axis,
                            uint32_t rank)
{
  /* if ranks differ, only an index from the right names the same axis in both */
  int shown = a->rank == b->rank ? (int)axis : (int)axis - (int)rank;
  diag_error(c, E303, n->span, "cannot broadcast %s with %s: axis %d is %lld and %lld",
             ir_dims_text(c, a), ir_dims_text(c, b), shown, (long long)aligned_dim(a, rank, axis),
             (long long)aligned_dim(b, rank, axis));
  if (a->rank != b->rank) diag_help(c, "shapes are aligned at the right; `unsqueeze` adds an axis");
  return false;
}

/* Sets the dims of n by broadcasting inputs [first, end). Reports E303 if they do not fit. [32, 1,
 * 4] with [5, 1] becomes [32, 5, 4]. `decides` is the input that determines the size of an axis:
 * the message shows it with the input that does not fit. */
static bool rule_broadcast(Compile *c, Node *n, uint32_t first, uint32_t end)
{
  uint32_t rank = 0;
  int64_t dim[MAX_RANK];
  for (uint32_t i = first; i < end; i++) {
    if (ir_in(c, n, i)->rank > rank) rank = ir_in(c, n, i)->rank;
  }
  for (uint32_t axis = 0; axis < rank; axis++) {
    dim[axis] = 1;
    const Node *decides = NULL;
    for (uint32_t i = first; i < end; i++) {
      const Node *in = ir_in(c, n, i);
      int64_t d = aligned_dim(in, rank, axis);
      if (d == 1 || d == dim[axis]) continue;
      if (decides) return broadcast_error(c, n, decides, in, axis, rank);
      dim[axis] = d;
      decides = in;
    }
  }
  return rule_set_dims(c, n, rank, dim);
}

/* A step returns the result of a statement of a row program, in f32. Absent inputs have no axes. */
bool shape_step(Compile *c, Node *n)
{
  n->dtype = AMPC_F32;
  return rule_broadcast(c, n, 0, n->n_in);
}

/* ---- leaves ---- */

/* Sets rank 0. A weak result does not widen the other operand: 2 * x is f16 if x is f16. */
static bool scalar_of(Node *n, DType type, bool weak)
{
  n->rank = 0;
  n->dtype = type;
  n->weak = weak;
  return true;
}

/* Data has a leading axis with the block's batch size. An argument of an infer block has the
 * declared shape. */
bool shape_source(Compile *c, Node *n)
{
  const ampc_source *s = &c->graph->sources.at[attr_int(n, "index")];
  int64_t dim[MAX_RANK + 1];
  uint32_t rank = 0;
  if (s->kind != AMPC_SOURCE_ARGUMENT) dim[rank++] = c->graph->blocks.at[n->block].batch;
  for (uint32_t i = 0; i < s->rank; i++) dim[rank++] = s->dim[i];
  n->dtype = s->dtype;
  return rule_set_dims(c, n, rank, dim);
}

/* A quantized weight has two leaves: its codes and its scales. */
static bool packed_dims(Compile *c, Node *n, const Parameter *p)
{
  ampc_packed packed = ampc_packed_of(p->packing, p->dim[0], p->dim[1]);
  bool scales = attr_int(n, "scales");
  n->dtype = scales ? AMPC_F32 : AMPC_U8;
  int64_t blocks = p->dim[0] * p->dim[1] / packed.block;
  return rule_set_dims(c, n, 1, scales ? &blocks : &packed.codes);
}

bool shape_packed(Compile *c, Node *n)
{
  int64_t dim[MAX_RANK];
  uint32_t rank = ir_shape_of(n, dim);
  n->dtype = AMPC_F32;
  return rule_set_dims(c, n, rank, dim);
}

bool shape_param(Compile *c, Node *n)
{
  const Parameter *p = &c->graph->params.at[attr_int(n, "index")];
  int64_t dim[MAX_RANK];
  if (p->packing) return packed_dims(c, n, p);
  n->dtype = reads_average(c->graph, n) ? AMPC_F32 : p->dtype;
  n->layout = (uint8_t)ir_param_dims(p, dim);
  return rule_set_dims(c, n, p->rank, dim);
}

/* The result is a flat list of the gradient in memory order, as updates read it. */
bool shape_gradient(Compile *c, Node *n)
{
  const Parameter *p = &c->graph->params.at[attr_int(n, "index")];
  int64_t elements = dims_product(p->dim, p->rank);
  n->dtype = AMPC_F32;
  return rule_set_dims(c, n, 1, &elements);
}

#define SCALAR(shape, type, weak)                                                                  \
  bool shape(Compile *c, Node *n)                                                                  \
  {                                                                                                \
    (void)c;                                                                                       \
    return scalar_of(n, type, weak);                                                               \
  }

SCALAR(shape_number, AMPC_F32, true)
SCALAR(shape_integer, AMPC_I64, true)
/* Settings and schedules are numbers. The loss scale is a tensor: gradients start from it. */
SCALAR(shape_scalar, AMPC_F32, n->op != OP_loss_scale)
SCALAR(shape_counter, AMPC_I64, false)

/* ---- elementwise ---- */

/* A cast is explicit, so its result counts as a tensor even if its input is a number. */
bool shape_cast(Compile *c, Node *n)
{
  rule_like(n, ir_in(c, n, 0), (DType)attr_int(n, "dtype"));
  n->weak = false;
  return true;
}

bool shape_cast_like(Compile *c, Node *n)
{
  rule_like(n, ir_in(c, n, 0), ir_in(c, n, 1)->dtype);
  for (uint32_t i = 2; i < n->n_in; i++) n->dtype = dtype_promote(n->dtype, ir_in(c, n, i)->dtype);
  n->weak = false;
  return true;
}

bool shape_same(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  return rule_like(n, x, x->dtype);
}

/* Rejects bools, which cannot be negated. */
bool shape_signed(Compile *c, Node *n)
{
  if (ir_in(c, n, 0)->dtype != AMPC_BOOL) return shape_same(c, n);
  diag_error(c, E406, n->span, "%s needs numbers, got %s", op_of(n)->name,
             ir_type_text(c, ir_in(c, n, 0)));
  return diag_help(c, "use `~` for conditions, or `.to(f32)` to compute with them");
}

/* exp(integers) is f32. The result of drop is random, so it is no weak number. */
bool shape_real(Compile *c, Node *n)
{
  shape_same(c, n);
  if (!dtype_is_float(n->dtype)) n->dtype = AMPC_F32;
  if (n->op == OP_drop) n->weak = false;
  return true;
}

static bool need_bool(Compile *c, const Node *n, uint32_t i, const char *what)
{
  const Node *in = ir_in(c, n, i);
  if (in->dtype == AMPC_BOOL) return true;
  diag_error(c, E406, n->span, "%s needs bool[..], got %s", what, ir_type_text(c, in));
  return diag_help(c, "a comparison makes one: `x != 0`");
}

bool shape_test(Compile *c, Node *n)
{
  if (n->op == OP_logical_not && !need_bool(c, n, 0, "`~`")) return false;
  return rule_like(n, ir_in(c, n, 0), AMPC_BOOL);
}

/* Arithmetic rejects bools, but maximum and minimum accept them. */
bool shape_broadcast(Compile *c, Node *n)
{
  n->dtype = op_common_type(c, n);
  bool picks = n->op == OP_maximum || n->op == OP_minimum;
  if (n->dtype == AMPC_BOOL && !picks) {
    diag_error(c, E406, n->span, "%s needs numbers, got %s and %s", op_of(n)->name,
               ir_type_text(c, ir_in(c, n, 0)), ir_type_text(c, ir_in(c, n, 1)));
    return diag_help(c, "use `&` and `|` for conditions, or `.to(f32)` to compute with them");
  }
  return rule_broadcast(c, n, 0, n->n_in);
}

/* Integers have no infinity, so a divisor that is known to be 0 is an error. */
bool shape_divide(Compile *c, Node *n)
{
  const Node *by = ir_in(c, n, 1);
  if (!shape_broadcast(c, n)) return false;
  bool zero = by->op == OP_integer && attr_int(by, "value") == 0;
  if (!zero || dtype_is_float(n->dtype)) return true;
  diag_error(c, E406, n->span, "%s of %s by 0 is no integer", op_of(n)->name,
             ir_type_text(c, ir_in(c, n, 0)));
  return diag_help(c, "`.to(f32)`");
}

/* Integers to the power of integers are integers, so a negative power is an error. */
bool shape_pow(Compile *c, Node *n)
{
  const Node *power = ir_in(c, n, 1);
  if (!shape_broadcast(c, n)) return false;
  bool below = power->op == OP_integer && attr_int(power, "value") < 0;
  if (!below || dtype_is_float(n->dtype)) return true;
  diag_error(c, E406, n->span, "%s to the power %lld is no integer",
             ir_type_text(c, ir_in(c, n, 0)), (long long)attr_int(power, "value"));
  return diag_help(c, "`.to(f32)`");
}

bool shape_compare(Compile *c, Node *n)
{
  n->dtype = AMPC_BOOL;
  return rule_broadcast(c, n, 0, n->n_in);
}

bool shape_bitwise(Compile *c, Node *n)
{
  n->dtype = op_common_type(c, n);
  if (dtype_is_float(n->dtype)) {
    diag_error(c, E406, n->span, "`%s` needs bool[..] or int[..], got %s and %s",
               n->op == OP_logical_and ? "&" : "|", ir_type_text(c, ir_in(c, n, 0)),
               ir_type_text(c, ir_in(c, n, 1)));
    return diag_help(c, "a comparison makes a condition: `x != 0`");
  }
  return rule_broadcast(c, n, 0, n->n_in);
}

bool shape_where(Compile *c, Node *n)
{
  if (!need_bool(c, n, 0, "the condition of where")) return false;
  n->dtype = op_common_type(c, n);
  return rule_broadcast(c, n, 0, n->n_in);
}

/* ---- reductions and rows ---- */

/* Sets the dims of x without the axes in the mask, or with size 1 for these axes. */
static bool drop_axes(Compile *c, Node *n, const Node *x, uint64_t axes, bool keep)
{
  int64_t dim[MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < x->rank; i++) {
    bool reduced = (axes >> i) & 1;
    if (!reduced || keep) dim[rank++] = reduced ? 1 : x->dim[i];
  }
  return rule_set_dims(c, n, rank, dim);
}

/* Replaces mask 0 ("no axes given") by the mask of all axes, so that later passes need no special
 * case. Sums of integers and bools are i64, as in PyTorch. */
bool shape_reduce(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  int64_t all = ((int64_t)1 << x->rank) - 1;
  if (!attr_int(n, "dim")) attr_set_int(n, "dim", all);
  assert((attr_int(n, "dim") & ~all) == 0);
  if (n->op == OP_mean && !rule_need_float(c, n, 0)) return false;
  n->dtype = x->dtype;
  bool adds = n->op == OP_sum || n->op == OP_prod;
  if (adds && !dtype_is_float(x->dtype)) n->dtype = AMPC_I64;
  return drop_axes(c, n, x, (uint64_t)attr_int(n, "dim"), attr_int(n, "keepdim"));
}

/* The result is [parts, columns]: f32 for floats, because rounding the parts to 16 bits would lose
 * precision; i64 for integers and bools, as in a sum. */
bool shape_part_sums(Compile *c, Node *n)
{
  int64_t all = ir_elements(ir_in(c, n, 0)), columns = attr_int(n, "columns");
  assert(columns > 0 && all % columns == 0);
  n->dtype = dtype_is_float(ir_in(c, n, 0)->dtype) ? AMPC_F32 : AMPC_I64;
  return rule_set_dims(c, n, 2, (int64_t[]){column_parts(all / columns, columns), columns});
}

/* A row op needs an axis, which a tensor of rank 0 does not have. */
bool rule_need_axis(Compile *c, const Node *n)
{
  const Node *x = ir_in(c, n, 0);
  if (x->rank) {
    assert(attr_int(n, "dim") >= 0 && attr_int(n, "dim") < x->rank);
    return true;
  }
  return diag_error(c, E311, n->span, "%s works along an axis, got %s", op_of(n)->name,
                    ir_type_text(c, x));
}

bool shape_arg_reduce(Compile *c, Node *n)
{
  if (!rule_need_axis(c, n)) return false;
  n->dtype = AMPC_I64;
  return drop_axes(c, n, ir_in(c, n, 0), 1ull << attr_int(n, "dim"), attr_int(n, "keepdim"));
}

/* Checks the weight or bias of a norm: one value for each element of a row. */
static bool check_row_vector(Compile *c, const Node *n, uint32_t i)
{
  const Node *x = ir_in(c, n, 0), *w = ir_in(c, n, i);
  if (!n->in[i].id) return true;
  int64_t axis = attr_int(n, "dim"), size = x->dim[axis];
  bool last = axis == x->rank - 1;
  if (last && w->rank == 1 && w->dim[0] == size) return true;
  diag_error(c, E311, n->span, "%s along axis %lld of %s needs %s [%lld], got %s", op_of(n)->name,
             (long long)axis, ir_dims_text(c, x), op_of(n)->signature.input[i].name,
             (long long)size, ir_dims_text(c, w));
  return diag_note(c, w->span, "this one");
}

/* Softmax, norms and their gradients: the result has the shape of input 0. */
bool shape_row_same(Compile *c, Node *n)
{
  if (!rule_need_axis(c, n) || !rule_need_float(c, n, 0)) return false;
  if (n->op == OP_layer_norm && !(check_row_vector(c, n, 1) && check_row_vector(c, n, 2)))
    return false;
  return shape_same(c, n);
}

/* The result has one float per row. */
bool shape_row_reduce(Compile *c, Node *n)
{
  if (!rule_need_axis(c, n) || !rule_need_float(c, n, 0)) return false;
  n->dtype = ir_in(c, n, 0)->dtype;
  return drop_axes(c, n, ir_in(c, n, 0), 1ull << attr_int(n, "dim"), attr_int(n, "keepdim"));
}

/* The result is one element of each row, of any type. */
bool shape_row_pick(Compile *c, Node *n)
{
  if (!rule_need_axis(c, n)) return false;
  n->dtype = ir_in(c, n, 0)->dtype;
  return drop_axes(c, n, ir_in(c, n, 0), 1ull << attr_int(n, "dim"), attr_int(n, "keepdim"));
}

bool shape_row_var(Compile *c, Node *n)
{
  if (!rule_need_axis(c, n) || !rule_need_float(c, n, 0)) return false;
  n->dtype = ir_in(c, n, 0)->dtype;
  return drop_axes(c, n, ir_in(c, n, 0), 1ull << attr_int(n, "dim"), false);
}

/* Logits [n, classes, ..], with classes along `dim`, and targets [n, ..] become losses [n, ..].
 * Only the kernel can check that a class is in range. */
bool shape_cross_entropy(Compile *c, Node *n)
{
  const Node *logits = ir_in(c, n, 0), *target = ir_in(c, n, 1);
  if (!rule_need_axis(c, n) || !rule_need_float(c, n, 0)) return false;
  n->dtype = logits->dtype;
  drop_axes(c, n, logits, 1ull << attr_int(n, "dim"), false);
  if (dtype_is_integer(target->dtype) && ir_same_dims(n, target)) return true;
  diag_error(c, E310, n->span, "cross_entropy of %s needs classes int%s, got %s",
             ir_type_text(c, logits), ir_dims_text(c, n), ir_type_text(c, target));
  if (!dtype_is_integer(target->dtype) && ir_same_dims(n, target)) diag_help(c, "`.to(i64)`");
  return false;
}

/* ---- effects ---- */

/* Checks that input 0 is one number. The most frequent mistake is a loss with several elements, so
 * the help names the reductions. */
static bool need_single(Compile *c, const Node *n, ErrorCode code, const char *what)
{
  const Node *x = ir_in(c, n, 0);
  bool number = dtype_is_float(x->dtype) || n->op == OP_metric;
  if (x->rank == 0 && number) return true;
  diag_error(c, code, n->span, "%s needs a single number, got %s", what, ir_type_text(c, x));
  return diag_help(c, "`.mean()` or `.sum()`");
}

/* An effect gets the shape of a single f32, because no node reads its result. */
bool shape_effect(Compile *c, Node *n)
{
  scalar_of(n, AMPC_F32, false);
  if (n->op == OP_minimize) return need_single(c, n, E603, "`minimize`");
  if (n->op == OP_metric) return need_single(c, n, E311, "metric");
  return true;
}

/* The result has two sums of squares for each part of the group's parameters. */
bool shape_param_parts(Compile *c, Node *n)
{
  ParamParts parts =
      param_parts(c->graph, attr_int(n, "optimizer"), (uint32_t)attr_int(n, "group"));
  n->dtype = AMPC_F32;
  return rule_set_dims(c, n, 2, (int64_t[]){parts.n, 2});
}

/* The result has room for all elements of each part of the group. */
bool shape_param_elements(Compile *c, Node *n)
{
  ParamParts parts =
      param_parts(c->graph, attr_int(n, "optimizer"), (uint32_t)attr_int(n, "group"));
  n->dtype = AMPC_F32;
  return rule_set_dims(c, n, 1, (int64_t[]){parts.n * parts.size});
}

/* The result has one number for each parameter of the group. */
bool shape_params(Compile *c, Node *n)
{
  ParamParts parts =
      param_parts(c->graph, attr_int(n, "optimizer"), (uint32_t)attr_int(n, "group"));
  n->dtype = AMPC_F32;
  return rule_set_dims(c, n, 1, (int64_t[]){parts.params});
}

bool shape_ranges(Compile *c, Node *n)
{
  n->dtype = AMPC_I32;
  int64_t parts = range_parts(ir_elements(ir_in(c, n, 0)));
  return rule_set_dims(c, n, 2, (int64_t[]){parts, RANGE_FIELDS});
}

/* The result has two numbers for each part of a range. `sliced`: each member walks a slice of the
 * range, which has fewer parts. */
static bool set_parts(Compile *c, Node *n, bool sliced)
{
  int64_t parts = GRAD_NORM_PARTIALS / (sliced ? c->graph->members : 1);
  n->dtype = AMPC_F32;
  return rule_set_dims(c, n, 2, (int64_t[]){parts > 4 ? parts : 4, 2});
}

bool shape_grad_norm(Compile *c, Node *n)
{
  return set_parts(c, n, attr_int(n, "of") >= 0);
}

bool shape_update(Compile *c, Node *n)
{
  if (!attr_int(n, "sums")) return shape_effect(c, n);
  return op_takes(op_of(n), FILE_weights) ? shape_param_parts(c, n) : set_parts(c, n, true);
}

bool shape_member_rows(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  n->dtype = x->dtype;
  return rule_set_dims(c, n, 2, (int64_t[]){c->graph->members * x->dim[0], x->dim[1]});
}
