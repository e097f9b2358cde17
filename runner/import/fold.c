/* Computes small integer tensors, so that what PyTorch writes as Shape, Gather and Concat becomes
 * the numbers of a `reshape`. PyTorch reorders the gates of recurrent layers by the same ops. */
#include <stdlib.h>
#include <string.h>
#include "common/shown.h"
#include "read_ops.h"

typedef struct Items {
  Item *at;
  int64_t n;
  uint32_t rank;
  int64_t dim[READ_RANK];
} Items;

enum { MOST_MOVED = 1 << 26 }; /* elements of a weight that is computed */

static int64_t other_of(Item i)
{
  return i.text ? i.other : i.n;
}

static Items items_of(const Value *v)
{
  Items x = {.at = v->item, .n = v->n, .rank = v->shape->rank};
  memcpy(x.dim, v->shape->dim[0], sizeof x.dim);
  return x;
}

/* Makes room for the elements of a shape. */
static bool make(Reader *r, Items *out, int64_t most)
{
  out->n = 1;
  for (uint32_t i = 0; i < out->rank; i++)
    if (out->dim[i] < 0 || __builtin_mul_overflow(out->n, out->dim[i], &out->n) || out->n > most)
      return refuse(r, "of more elements than amp import computes"), false;
  out->at = arena_array(r->arena, Item, (size_t)out->n + 1);
  return true;
}

/* Fills `out`, whose shape is set, with elements of x at `base` and strides. */
static void fill_view(const Items *x, int64_t base, const int64_t *stride, Items *out)
{
  int64_t place[READ_RANK] = {0}, from = base;
  for (int64_t i = 0; i < out->n; i++) {
    out->at[i] = x->at[from];
    for (uint32_t k = out->rank; k-- > 0;) {
      from += stride[k];
      if (++place[k] < out->dim[k]) break;
      from -= stride[k] * place[k];
      place[k] = 0;
    }
  }
}

static void strides_of(const Items *x, int64_t *stride)
{
  int64_t n = 1;
  for (uint32_t i = x->rank; i-- > 0; n *= x->dim[i]) stride[i] = n;
}

/* The product of sizes from axis `from` to before `to`. */
static int64_t product(const Items *x, uint32_t from, uint32_t to)
{
  int64_t n = 1;
  for (uint32_t i = from; i < to; i++) n *= x->dim[i];
  return n;
}

/* Makes an axis count from 0 on. */
static bool axis_in(Reader *r, int64_t *axis, uint32_t rank)
{
  *axis += *axis < 0 ? rank : 0;
  if (*axis >= 0 && *axis < rank) return true;
  return refuse(r, "along an axis that is out of range"), false;
}

/* ---- moves: x is the first input ---- */

typedef bool Move(Reader *r, const Items *x, size_t n, Items *out);

/* Every op that keeps the order of elements, once read_view() knows its shape. */
static bool move_view(Reader *r, const Items *x, size_t n, Items *out)
{
  Item to[2 * READ_RANK];
  (void)n;
  int64_t left = x->n;
  uint32_t open = READ_RANK;
  if (!view_shape(r, x->dim, x->rank, to, &out->rank)) return false;
  for (uint32_t i = 0; i < out->rank; i++) {
    if (to[i].text) return refuse(r, "to a shape that depends on the arguments"), false;
    out->dim[i] = to[i].n;
    if (to[i].n == -1) open = i;
    if (to[i].n > 0) left /= to[i].n;
  }
  if (open < READ_RANK) out->dim[open] = left;
  bool fits = true;
  for (uint32_t i = 0; i < out->rank; i++) fits = fits && out->dim[i] >= 0 && out->dim[i] <= x->n;
  out->at = x->at;
  out->n = fits ? product(out, 0, out->rank) : -1;
  return out->n == x->n || (refuse(r, "to a shape of another number of elements"), false);
}

static bool move_transpose(Reader *r, const Items *x, size_t n, Items *out)
{
  int64_t stride[READ_RANK], turned[READ_RANK];
  Item *to;
  uint32_t axes;
  (void)n;
  *out = *x;
  if (!read_perm(r, x->rank, &to, &axes)) return false;
  strides_of(x, stride);
  for (uint32_t i = 0; i < axes; i++) {
    out->dim[i] = x->dim[to[i].n];
    turned[i] = stride[to[i].n];
  }
  if (!make(r, out, x->n)) return false;
  fill_view(x, 0, turned, out);
  return true;
}

static bool move_slice(Reader *r, const Items *x, size_t n, Items *out)
{
  Cut cuts[READ_RANK];
  uint32_t count;
  int64_t stride[READ_RANK], base = 0;
  (void)n;
  *out = *x;
  if (!read_cuts(r, cuts, &count)) return refuse(r, "with computed bounds"), false;
  strides_of(x, stride);
  for (uint32_t i = 0; i < count; i++) {
    int64_t axis = cuts[i].axis, from, end, step = cuts[i].step;
    if (!axis_in(r, &axis, x->rank)) return false;
    if (cuts[i].start.text || cuts[i].stop.text || step == 0)
      return refuse(r, "of sizes, with computed bounds or step 0"), false;
    clamp_cut(&cuts[i], x->dim[axis], &from, &end);
    int64_t size = step > 0 ? (end - from + step - 1) / step : (end - from + step + 1) / step;
    out->dim[axis] = size > 0 ? size : 0;
    base += from * stride[axis];
    stride[axis] *= step;
  }
  if (!make(r, out, x->n)) return false;
  fill_view(x, base, stride, out);
  return true;
}

static bool move_gather(Reader *r, const Items *x, size_t n, Items *out)
{
  const Value *at = in(r, 1);
  int64_t axis = attr_number(r, "axis", 0);
  (void)n;
  if (!is_known(at) || !axis_in(r, &axis, x->rank)) return false;
  uint32_t more = at->shape->rank, k = (uint32_t)axis;
  out->rank = x->rank - 1 + more;
  if (out->rank > READ_RANK) return refuse(r, "to more than 6 axes"), false;
  memcpy(out->dim, x->dim, k * sizeof *x->dim);
  memcpy(out->dim + k, at->shape->dim[0], more * sizeof *x->dim);
  memcpy(out->dim + k + more, x->dim + k + 1, (x->rank - k - 1) * sizeof *x->dim);
  if (!make(r, out, MOST_MOVED)) return false;
  int64_t inner = product(x, k + 1, x->rank), outer = product(x, 0, k);
  Item *to = out->at;
  for (int64_t o = 0; o < outer; o++)
    for (uint32_t i = 0; i < at->n; i++) {
      int64_t from = at->item[i].n + (at->item[i].n < 0 ? x->dim[k] : 0);
      if (from < 0 || from >= x->dim[k]) return refuse(r, "beyond the end of a constant"), false;
      memcpy(to, x->at + (o * x->dim[k] + from) * inner, (size_t)inner * sizeof *to);
      to += inner;
    }
  return true;
}

static bool move_concat(Reader *r, const Items *x, size_t n, Items *out)
{
  int64_t axis = attr_number(r, "axis", 0);
  *out = *x;
  if (!axis_in(r, &axis, x->rank)) return false;
  for (size_t i = 1; i < n; i++) {
    bool fits = x[i].rank == x->rank;
    for (uint32_t k = 0; fits && k < x->rank; k++) fits = k == axis || x[i].dim[k] == x->dim[k];
    if (!fits) return refuse(r, "of tensors with different axes"), false;
    out->dim[axis] += x[i].dim[axis];
  }
  if (!make(r, out, MOST_MOVED)) return false;
  int64_t done = 0, outer = product(x, 0, (uint32_t)axis), row = out->n / (outer ? outer : 1);
  for (size_t i = 0; i < n; done += product(&x[i++], (uint32_t)axis, x->rank))
    for (int64_t o = 0, part = product(&x[i], (uint32_t)axis, x->rank); o < outer; o++)
      memcpy(out->at + o * row + done, x[i].at + o * part, (size_t)part * sizeof *out->at);
  return true;
}

static bool move_expand(Reader *r, const Items *x, size_t n, Items *out)
{
  const Value *shape = in(r, 1);
  int64_t own[READ_RANK], stride[READ_RANK] = {0};
  (void)n;
  if (!is_known(shape) || shape->n > READ_RANK) return false;
  uint32_t rank = shape->n > x->rank ? shape->n : x->rank;
  *out = (Items){.rank = rank};
  strides_of(x, own);
  for (uint32_t i = 0; i < rank; i++) {
    bool has = i + x->rank >= rank, asks = i + shape->n >= rank;
    int64_t size = has ? x->dim[i + x->rank - rank] : 1;
    if (has && size != 1) stride[i] = own[i + x->rank - rank];
    out->dim[i] = size == 1 && asks ? shape->item[i + shape->n - rank].n : size;
  }
  if (!make(r, out, MOST_ITEMS)) return false;
  fill_view(x, 0, stride, out);
  return true;
}

static const struct {
  const char *op;
  Move *move;
} moves[] = {{"Identity", move_view}, {"Reshape", move_view},   {"Flatten", move_view},
             {"Squeeze", move_view},  {"Unsqueeze", move_view}, {"Transpose", move_transpose},
             {"Slice", move_slice},   {"Gather", move_gather},  {"Concat", move_concat},
             {"Expand", move_expand}};

static Move *move_of(const char *op)
{
  for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
    if (strcmp(moves[i].op, op) == 0) return moves[i].move;
  return NULL;
}

/* The inputs of a node that it moves; the others say where to. */
static size_t moved_inputs(const OnnxNode *n)
{
  return strcmp(n->op_type, "Concat") == 0 ? n->n_input : 1;
}

/* ---- arithmetic ---- */

/* Of two numbers; false: no such number. Quotients round towards 0. */
typedef bool Compute(int64_t a, int64_t b, int64_t *out);

#define COMPUTE(name, good, value)                                                                 \
  static bool name(int64_t a, int64_t b, int64_t *out)                                             \
  {                                                                                                \
    return (good) ? (*out = (value), true) : false;                                                \
  }
COMPUTE(divide, b != 0 && b != -1, a / b)
COMPUTE(modulo, b > 0, (a % b + b) % b)
COMPUTE(remainder_of, b != 0 && b != -1, a % b)
COMPUTE(larger, true, a > b ? a : b)
COMPUTE(smaller, true, a < b ? a : b)
COMPUTE(equals, true, a == b)
COMPUTE(is_less, true, a < b)
COMPUTE(is_greater, true, a > b)
COMPUTE(is_at_most, true, a <= b)
COMPUTE(is_at_least, true, a >= b)
COMPUTE(both, true, a &&b)
COMPUTE(either, true, a || b)
COMPUTE(one_of, true, !a != !b)

static bool sum(int64_t a, int64_t b, int64_t *out)
{
  return !__builtin_add_overflow(a, b, out);
}
static bool difference(int64_t a, int64_t b, int64_t *out)
{
  return !__builtin_sub_overflow(a, b, out);
}
static bool times(int64_t a, int64_t b, int64_t *out)
{
  return !__builtin_mul_overflow(a, b, out);
}

typedef struct Arithmetic {
  const char *op;
  Compute *compute;
  const char *form;  /* of sizes; NULL: a comparison, the same for all sizes */
  int64_t neutral;   /* as second operand, the first is the result; INT64_MIN: none */
  bool not_negative; /* the form is right only for such operands */
} Arithmetic;
static const Arithmetic arithmetic[] = {{"Add", sum, "(%s + %s)", 0, false},
                                        {"Sub", difference, "(%s - %s)", 0, false},
                                        {"Mul", times, "(%s * %s)", 1, false},
                                        {"Div", divide, "(%s // %s)", 1, true},
                                        {"Mod", modulo, "(%s %% %s)", INT64_MIN, false},
                                        {"Max", larger, "max(%s, %s)", INT64_MIN, false},
                                        {"Min", smaller, "min(%s, %s)", INT64_MIN, false},
                                        {"Equal", equals, NULL, INT64_MIN, false},
                                        {"Less", is_less, NULL, INT64_MIN, false},
                                        {"Greater", is_greater, NULL, INT64_MIN, false},
                                        {"LessOrEqual", is_at_most, NULL, INT64_MIN, false},
                                        {"GreaterOrEqual", is_at_least, NULL, INT64_MIN, false},
                                        {"And", both, NULL, INT64_MIN, false},
                                        {"Or", either, NULL, INT64_MIN, false},
                                        {"Xor", one_of, NULL, INT64_MIN, false}};
static const Arithmetic whole_remainder = {"Mod", remainder_of, "(%s %% %s)", INT64_MIN, true};

/* A text for messages: values have their names in the file. */
static const char *named_text(Reader *r, const char *code)
{
  Text out = text_new(r->arena);
  for (const char *at = code; *at;) {
    size_t n = strcspn(at, "$");
    text_add(&out, at, n);
    at += n;
    if (!*at) break;
    const Value *v = r->values.at[strtoul(at + 1, (char **)(uintptr_t)&at, 10)];
    text_puts(&out, *v->name ? arena_shown(r->arena, v->name, "") : "a value");
  }
  return out.at ? out.at : "";
}

/* A comparison of sizes holds for all of them, or amp import takes that for granted. */
static void note_granted(Reader *r, const Arithmetic *how, Item a, Item b, int64_t truth)
{
  bool size_below_0 = (a.text && !b.text && b.n < 0) || (b.text && !a.text && a.n < 0);
  if (size_below_0) return;
  vec_push(r->arena, &r->granted,
           text(r, "%s of %s and %s is %s", how->op, named_text(r, item_text(r, a)),
                named_text(r, item_text(r, b)), truth ? "true" : "false"));
}

static bool compute(Reader *r, const Arithmetic *how, Item a, Item b, Item *out)
{
  bool numbers = !a.text && !b.text;
  if (how->neutral != INT64_MIN && !b.text && b.n == how->neutral) return *out = a, true;
  if (how->compute == times && !a.text && a.n == 1) return *out = b, true;
  *out = (Item){0};
  if (!how->compute(a.n, b.n, &out->n) || !how->compute(other_of(a), other_of(b), &out->other))
    return refuse(r, "of integers without a result"), false;
  if (numbers) return true;
  if (!how->form) {
    if (out->n != out->other) return refuse(r, "of sizes that depend on the arguments"), false;
    return note_granted(r, how, a, b, out->n), true;
  }
  bool negative = a.n < 0 || b.n < 0 || other_of(a) < 0 || other_of(b) < 0;
  if (how->not_negative && negative) return refuse(r, "of sizes that are negative"), false;
  out->text = text(r, how->form, item_text(r, a), item_text(r, b));
  return true;
}

/* The element of x at place i of a result that it is broadcast to. */
static Item broadcast_item(const Items *x, const Items *to, int64_t i)
{
  int64_t from = 0, stride = 1;
  for (uint32_t k = 0; k < x->rank; k++) {
    int64_t size = x->dim[x->rank - 1 - k], place = i % to->dim[to->rank - 1 - k];
    i /= to->dim[to->rank - 1 - k];
    from += size == 1 ? 0 : place * stride;
    stride *= size;
  }
  return x->at[from];
}

/* The shape that all inputs are broadcast to. */
static bool broadcast(Reader *r, const Items *x, size_t n, Items *out)
{
  *out = (Items){0};
  for (size_t i = 0; i < n; i++)
    if (x[i].rank > out->rank) out->rank = x[i].rank;
  for (uint32_t k = 0; k < out->rank; k++) {
    int64_t *size = &out->dim[out->rank - 1 - k];
    *size = 1;
    for (size_t i = 0; i < n; i++)
      if (k < x[i].rank && x[i].dim[x[i].rank - 1 - k] != 1) *size = x[i].dim[x[i].rank - 1 - k];
    for (size_t i = 0; i < n; i++)
      if (k < x[i].rank && x[i].dim[x[i].rank - 1 - k] != 1 && x[i].dim[x[i].rank - 1 - k] != *size)
        return refuse(r, "of integer tensors of different shapes"), false;
  }
  return make(r, out, MOST_ITEMS);
}

static const Arithmetic *arithmetic_of(const char *op)
{
  for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; i++)
    if (strcmp(arithmetic[i].op, op) == 0) return &arithmetic[i];
  return NULL;
}

static bool fold_arithmetic(Reader *r, const Items *x, size_t n, Items *out)
{
  const Arithmetic *how = arithmetic_of(r->node->op_type);
  if (!how) return false;
  if (how->compute == modulo && attr_number(r, "fmod", 0)) how = &whole_remainder;
  if (!broadcast(r, x, n, out)) return false;
  for (int64_t i = 0; i < out->n; i++) {
    out->at[i] = broadcast_item(x, out, i);
    for (size_t k = 1; k < n; k++)
      if (!compute(r, how, out->at[i], broadcast_item(&x[k], out, i), &out->at[i])) return false;
  }
  return true;
}

static bool fold_where(Reader *r, const Items *x, Items *out)
{
  if (!broadcast(r, x, 3, out)) return false;
  for (int64_t i = 0; i < out->n; i++)
    out->at[i] = broadcast_item(&x[broadcast_item(x, out, i).n ? 1 : 2], out, i);
  return true;
}

/* ReduceProd and so on, of all elements of a list. */
static bool fold_reduce(Reader *r, const Items *x, Items *out)
{
  static const char *const ops[][2] = {
      {"ReduceProd", "Mul"}, {"ReduceSum", "Add"}, {"ReduceMax", "Max"}, {"ReduceMin", "Min"}};
  const Arithmetic *how = NULL;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (strcmp(ops[i][0], r->node->op_type) == 0) how = arithmetic_of(ops[i][1]);
  Item *axes;
  uint32_t n;
  read_axes(r, 1, &axes, &n);
  if (!how || x->rank != 1 || x->n == 0 || (n == 0 && attr_number(r, "noop_with_empty_axes", 0)))
    return false;
  *out = (Items){.rank = attr_number(r, "keepdims", 1) != 0, .n = 1, .dim = {1}};
  out->at = arena_new(r->arena, Item);
  *out->at = x->at[0];
  for (int64_t i = 1; i < x->n; i++)
    if (!compute(r, how, *out->at, x->at[i], out->at)) return false;
  return true;
}

static bool fold_not(Reader *r, const Items *x, Items *out)
{
  *out = *x;
  if (!make(r, out, x->n)) return false;
  for (int64_t i = 0; i < x->n; i++) {
    if (x->at[i].text) return false;
    out->at[i].n = strcmp(r->node->op_type, "Neg") == 0 ? -x->at[i].n : !x->at[i].n;
  }
  return true;
}

/* ---- weights of recurrent layers, which the file computes ---- */

/* Moves numbers of elements in place of elements. */
static bool fold_weight(Reader *r)
{
  size_t n = moved_inputs(r->node), bytes = 0;
  const Value *from[8];
  Items x[8], out = {0};
  int64_t all = 0;
  for (size_t i = 0; i < n; i++) {
    const Value *v = n <= 8 ? in(r, i) : NULL;
    if (!v || v->kind != VALUE_weight || v->turned || (i && v->type != from[0]->type)) return false;
    from[i] = v;
    x[i] = (Items){.rank = v->shape->rank};
    memcpy(x[i].dim, v->shape->dim[0], sizeof x->dim);
    if (!make(r, &x[i], MOST_MOVED)) return true;
    for (int64_t k = 0; k < x[i].n; k++) x[i].at[k].n = all++;
    if (x[i].n) bytes = v->tensor->raw_data.len / (size_t)x[i].n;
  }
  if (!bytes || !move_of(r->node->op_type)(r, x, n, &out)) return r->dropped;
  Value *made = made_tensor(r, from[0]->type, bytes * (size_t)out.n, out.dim, out.rank);
  for (int64_t k = 0; k < out.n; k++) {
    int64_t place = out.at[k].n;
    size_t i = 0;
    for (; place >= x[i].n; i++) place -= x[i].n;
    memcpy(made->tensor->raw_data.data + (size_t)k * bytes,
           from[i]->tensor->raw_data.data + (size_t)place * bytes, bytes);
  }
  give_rows(r, made);
  return true;
}

bool read_folded(Reader *r)
{
  const char *op = r->node->op_type;
  size_t n = r->node->n_input;
  Move *move = move_of(op);
  Items x[8], out = {0};
  if (move && feeds_cells(r, r->node->n_output ? r->node->output[0] : "")) return fold_weight(r);
  if (n == 0 || n > 8) return false;
  for (size_t i = 0; i < n && i < (move ? moved_inputs(r->node) : n); i++) {
    if (!in(r, i) || in(r, i)->kind != VALUE_items) return false;
    x[i] = items_of(in(r, i));
  }
  bool where = strcmp(op, "Where") == 0 && n == 3 && is_known(in(r, 0)),
       reduce = strncmp(op, "Reduce", 6) == 0,
       unary = strcmp(op, "Not") == 0 || strcmp(op, "Neg") == 0;
  bool good = move     ? move(r, x, n, &out)
              : where  ? fold_where(r, x, &out)
              : reduce ? fold_reduce(r, x, &out)
              : unary  ? fold_not(r, x, &out)
                       : fold_arithmetic(r, x, n, &out);
  if (!good) return r->dropped;
  const Arithmetic *how = move ? NULL : arithmetic_of(op);
  bool truth = how && !how->form;
  give_shaped_items(r, out.at, out.dim, out.rank,
                    truth ? ONNX__TENSOR_PROTO__DATA_TYPE__BOOL : in(r, where ? 1 : 0)->type);
  return true;
}
