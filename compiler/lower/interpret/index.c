/* Evaluates subscripts: elements and slices of lists, strings, Sequential and tensors. */
#include "interpret.h"
#include "compiler/lower/model/model.h"
#include "scan.h"

/* The n elements start, start + step, ... of a slice. `stop` is as in Python. */
typedef struct SliceBounds {
  int64_t start, stop, step, n;
} SliceBounds;

/* Reads the start, end or step of a slice. If it is left out, *out does not change. */
static bool optional_value(Lower *l, Scope *s, const Expr *e, const char *what, int64_t *out)
{
  if (!e) return true;
  Datum v = eval(l, s, e);
  return d_is(v, D_none) || want_int(l, v, e->span, what, out);
}

/* Limits a position as Python does: slices may reach past the end; negative ones count from it. */
static int64_t clamp(int64_t v, int64_t size, bool backwards)
{
  int64_t low = backwards ? -1 : 0, high = backwards ? size - 1 : size;
  if (v < 0) v += size;
  return v < low ? low : v > high ? high : v;
}

static int64_t elements_of(const SliceBounds *r)
{
  int64_t sign = r->step < 0 ? -1 : 1, span = sign * (r->stop - r->start);
  return span > 0 ? (span - 1) / (sign * r->step) + 1 : 0;
}

/* Computes the bounds of a slice, like Python's slice.indices(size). */
static bool slice_range(Lower *l, Scope *s, const Sub *sub, int64_t size, bool backwards,
                        SliceBounds *r)
{
  *r = (SliceBounds){.step = 1};
  if (!optional_value(l, s, sub->step, "the step of a slice", &r->step)) return false;
  if (r->step == 0 || (r->step < 0 && !backwards))
    return refuse(l, E209, sub->span, "the step of a slice is %lld; it must be %s",
                  (long long)r->step, backwards ? "other than 0" : "positive");
  bool back = r->step < 0;
  if (!optional_value(l, s, sub->start, "the start of a slice", &r->start) ||
      !optional_value(l, s, sub->stop, "the end of a slice", &r->stop))
    return false;
  r->start = sub->start ? clamp(r->start, size, back) : back ? size - 1 : 0;
  r->stop = sub->stop ? clamp(r->stop, size, back) : back ? -1 : size;
  r->n = elements_of(r);
  return true;
}

/* ---- lists ---- */

/* Reads an index. A negative index counts from the end. An index out of range is an error. */
static bool element(Lower *l, Datum index, const Sub *sub, int64_t size, const char *what,
                    int64_t *out)
{
  int64_t i;
  if (!want_int(l, index, sub->index->span, "an index", &i)) return false;
  if (i < -size || i >= size)
    return refuse(l, E209, sub->span, "index %lld of %s with %lld elements", (long long)i, what,
                  (long long)size);
  *out = i < 0 ? i + size : i;
  return true;
}

static Datum list_slice(Lower *l, Scope *s, const Sub *sub, Datum base)
{
  SliceBounds r;
  if (!slice_range(l, s, sub, base.n, true, &r)) return d_of(D_error);
  if (!count_work(l, (uint32_t)r.n / ELEMENTS_PER_WORK, sub->span)) return d_of(D_error);
  Datum *at = arena_array(l->arena, Datum, r.n);
  for (int64_t i = 0; i < r.n; i++) at[i] = base.as.list[r.start + i * r.step];
  return d_list(at, (uint32_t)r.n);
}

/* Slices a string by bytes, not characters: strings are names of files and parameters. */
static Datum string_slice(Lower *l, Scope *s, const Sub *sub, Datum base)
{
  SliceBounds r = {0, 0, 1, 1};
  if (sub->kind == SUB_slice ? !slice_range(l, s, sub, base.n, true, &r)
                             : !element(l, eval(l, s, sub->index), sub, base.n, "a str", &r.start))
    return d_of(D_error);
  if (!count_work(l, (uint32_t)r.n / BYTES_PER_WORK, sub->span)) return d_of(D_error);
  char *text = arena_array(l->arena, char, r.n + 1);
  for (int64_t i = 0; i < r.n; i++) text[i] = base.as.text[r.start + i * r.step];
  return d_str(text);
}

/* Indexes a list, which has one axis. Nested lists are indexed one by one: `xs[0][1]`. */
static Datum index_list(Lower *l, Scope *s, const Expr *e, Datum base)
{
  const Sub *sub = e->as.index.subs.at;
  if (e->as.index.subs.n != 1 || sub->kind == SUB_ellipsis)
    return fail(l, E209, e->span, "a list has one axis");
  if (base.kind == D_str) return string_slice(l, s, sub, base);
  if (sub->kind == SUB_slice) return list_slice(l, s, sub, base);
  int64_t i;
  if (!element(l, eval(l, s, sub->index), sub, base.n, "a list", &i)) return d_of(D_error);
  return base.as.list[i];
}

static Datum index_sequential(Lower *l, Scope *s, const Expr *e, Datum base)
{
  DatumVec items = {0};
  iterate(l, base, e->span, &items);
  return index_list(l, s, e, d_list(items.at, items.n));
}

/* ---- tensors ---- */

/* The state while x[:, 0, none, ..., 1:3] is lowered from left to right. Each slice of an axis
 * becomes a slice node. One reshape at the end drops and adds axes. */
typedef struct TensorIndex {
  Value x;
  int64_t dim[2 * MAX_RANK]; /* sizes of the result */
  uint32_t rank, axis;
  Span span;
  bool reshaped;             /* an axis was dropped or added */
  Datum tensor[MAX_RANK];    /* subscripts that are tensors; they are applied last */
  Datum tensor_at[MAX_RANK]; /* ints: the axes of the result to which they apply */
  uint32_t n_tensors;
} TensorIndex;

/* Takes the slice x[:, t] in a `scan`. Returns false after a message. */
static bool index_turn(Lower *l, Datum at, TensorIndex *t)
{
  t->x = index_by_scan(l, t->x, t->axis, at, t->span);
  return t->x.id != 0;
}

/* Appends a slice. A whole axis needs no node, unless pass decode will compare with another length.
 * An empty slice is an error: no tensor is empty. */
static bool append_slice(Lower *l, TensorIndex *t, SliceBounds r, int64_t size)
{
  if (r.n == size && r.step == 1 && !l->c->options.decode) return true;
  if (r.n == 0)
    return refuse(l, E311, t->span, "this slice of axis %u, whose size is %lld, is empty", t->axis,
                  (long long)size);
  if (r.n == 1) r = (SliceBounds){r.start, r.start + 1, 1, 1}; /* the step has no effect */
  Datum d = append(l, t->span, OP_slice, &t->x, 1,
                   ATTRS({"dim", {.i = t->axis}}, {"start", {.i = r.start}},
                         {"stop", {.i = r.stop}}, {"step", {.i = r.step}}));
  t->x = d.as.tensor;
  return !d_is(d, D_error);
}

/* Records the tensor `index` of x[.., index, ..]. take_tensors() applies it when the axes of the
 * result are known. */
static bool note_tensor(Lower *l, TensorIndex *t, Datum index)
{
  Value v = as_tensor(l, index, t->span);
  const Node *n = ir_node(l->g, v);
  if (!v.id) return false;
  if (!dtype_is_integer(n->dtype)) {
    fail(l, E311, t->span, "an index is an int or a tensor of integers, got %s", d_text(l, index));
    return diag_help(l->c, n->dtype == AMPC_BOOL
                               ? "sizes cannot depend on values; instead of a mask use "
                                 "`where(mask, x, 0)`, which keeps the shape"
                               : "`.to(i64)`");
  }
  t->tensor[t->n_tensors] = d_tensor(v);
  t->tensor_at[t->n_tensors++] = d_int(t->rank);
  t->dim[t->rank++] = ir_node(l->g, t->x)->dim[t->axis++];
  return true;
}

/* Applies the tensors among the subscripts by defs of the library, after the reshape. */
static Datum take_tensors(Lower *l, const TensorIndex *t, Datum x)
{
  Args args = {.span = t->span};
  if (d_is(x, D_error)) return x;
  args_push(l, &args, x, t->span);
  if (t->n_tensors == 1) {
    args_push(l, &args, t->tensor_at[0], t->span);
    args_push(l, &args, t->tensor[0], t->span);
    return library_call(l, "_taken", &args);
  }
  args_push(l, &args, d_list(t->tensor_at, t->n_tensors), t->span);
  args_push(l, &args, d_list(t->tensor, t->n_tensors), t->span);
  return library_call(l, "_taken_together", &args);
}

/* Applies one subscript to one axis. A slice keeps the axis; an index drops it. */
static bool index_axis(Lower *l, Scope *s, const Sub *sub, TensorIndex *t)
{
  Node *n = ir_node(l->g, t->x);
  int64_t size = n->dim[t->axis];
  SliceBounds r = {0, size, 1, size};
  if (sub->kind == SUB_slice) {
    if (!slice_range(l, s, sub, size, false, &r)) return false;
    t->dim[t->rank++] = r.n;
  } else {
    const char *what = arena_printf(l->arena, "axis %u", t->axis);
    Datum index = eval(l, s, sub->index);
    if (is_scan_slice(l, index, t->x)) return index_turn(l, index, t);
    if (d_is_tensor(index)) return note_tensor(l, t, index);
    if (!element(l, index, sub, size, what, &r.start)) return false;
    r = (SliceBounds){r.start, r.start + 1, 1, 1};
    t->reshaped = true;
  }
  if (!append_slice(l, t, r, size)) return false;
  t->axis++;
  return true;
}

/* Keeps the axes up to `until`: axes that `...` matches, or axes after the last subscript. */
static void keep_axes(Lower *l, TensorIndex *t, uint32_t until)
{
  for (; t->axis < until; t->axis++) t->dim[t->rank++] = ir_node(l->g, t->x)->dim[t->axis];
}

/* True for `none`, which inserts an axis of size 1, as None does in NumPy. */
static bool is_new_axis(const Sub *sub)
{
  return sub->kind == SUB_index && sub->index->kind == EXPR_none;
}

/* Checks subscripts. *used: the number of subscripts other than `...` and `none`. */
static bool subs_fit(Lower *l, const SubList *subs, const TensorIndex *t, uint32_t *used)
{
  uint32_t added = 0, dots = 0, rank = ir_node(l->g, t->x)->rank;
  for (uint32_t i = 0; i < subs->n; i++) {
    added += is_new_axis(&subs->at[i]);
    dots += subs->at[i].kind == SUB_ellipsis;
  }
  *used = subs->n - added - dots;
  if (*used <= rank && rank + added <= MAX_RANK && dots <= 1) return true;
  return refuse(l, E311, t->span, "%u subscripts are too many for %s", *used,
                d_text(l, d_tensor(t->x)));
}

static Datum index_tensor(Lower *l, Scope *s, const Expr *e, Datum base)
{
  const SubList *subs = &e->as.index.subs;
  uint32_t used;
  TensorIndex t = {.x = as_tensor(l, base, e->as.index.base->span), .span = e->span};
  if (!t.x.id || !subs_fit(l, subs, &t, &used)) return d_of(D_error);
  uint32_t rank = ir_node(l->g, t.x)->rank;
  for (const Sub *sub = subs->at; sub < subs->at + subs->n; sub++) {
    if (sub->kind == SUB_ellipsis) {
      keep_axes(l, &t, t.axis + rank - used);
    } else if (is_new_axis(sub)) {
      t.dim[t.rank++] = 1;
      t.reshaped = true;
    } else if (!index_axis(l, s, sub, &t)) {
      return d_of(D_error);
    }
  }
  keep_axes(l, &t, ir_node(l->g, t.x)->rank);
  if (!t.n_tensors && !t.reshaped) return unchanged(l, t.x, e->span);
  Datum x = t.reshaped ? reshape_to(l, t.x, t.dim, t.rank, e->span) : d_tensor(t.x);
  return t.n_tensors ? take_tensors(l, &t, x) : x;
}

/* Returns the value of the subscript in `blocks["conv"]`; none if there are several, or slices. */
static Datum only_subscript(Lower *l, Scope *s, const Expr *e)
{
  const SubList *subs = &e->as.index.subs;
  bool single = subs->n == 1 && subs->at[0].kind == SUB_index;
  return single ? eval(l, s, subs->at[0].index) : d_of(D_none);
}

Datum eval_index(Lower *l, Scope *s, const Expr *e)
{
  Datum base = eval(l, s, e->as.index.base);
  if (d_is(base, D_error)) return base;
  if (base.kind == D_tensor || base.kind == D_param) return index_tensor(l, s, e, base);
  if (base.kind == D_list || base.kind == D_str) return index_list(l, s, e, base);
  if (base.kind == D_instance && base.as.instance->class == &class_sequential)
    return index_sequential(l, s, e, base);
  Datum key = base.kind == D_instance ? only_subscript(l, s, e) : d_of(D_none);
  if (key.kind == D_str) return instance_attr(l, base.as.instance, key.as.text, e->span);
  if (d_is(key, D_error)) return key;
  return fail(l, E209, e->span, "%s has no elements", d_kind_text(l, base));
}
