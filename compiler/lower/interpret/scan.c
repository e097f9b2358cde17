/* Lowers `scan t in range(T) carry h { ...; emit out = h }`: a loop at run time. Its body is
 * elaborated once, with tensors in place of the carried values. Only four ops cross the border of a
 * loop: Note [loops] in node.h.
 *
 * The body has its own names: carried names, which each iteration binds again, and names that it
 * binds itself. After the loop the carried names hold the values of the last iteration. The emitted
 * names hold the slices of all iterations, in the order of t, even if t decreases. */
#include "scan.h"
#include "interpret.h"
#include "compiler/lower/block/block.h"
#include "describe.h"
#include <string.h>

typedef struct Emitted {
  const char *name;
  Value value; /* the slices of all iterations */
  Span span;
} Emitted;

struct Scan {
  Scan *outer;
  uint16_t loop;
  Value t;
  int64_t low, step, count; /* t is low, low + step, ...; a reversed loop counts down */
  uint32_t n_carried;
  VEC(Emitted) emitted;
};

/* ---- t ---- */

/* Finds the values of t, which must be evenly spaced; they may increase or decrease. */
static bool find_turns(Lower *l, const Stmt *st, const DatumVec *items, Scan *out, bool *reversed)
{
  const Expr *iter = st->as.scan.iter;
  int64_t step = 1;
  for (uint32_t i = 0; i < items->n; i++) {
    Datum d = items->at[i];
    int64_t next = d.kind == D_int ? d.as.integer : 0;
    if (i == 1 && d.kind == D_int && items->at[0].kind == D_int)
      step = next - items->at[0].as.integer;
    bool even = i < 2 || (next - items->at[i - 1].as.integer == step && step);
    if (d.kind == D_int && even) continue;
    return refuse(l, E210, iter->span,
                  "`scan` needs evenly spaced ints: a range or `reversed(range(..))`");
  }
  if (!items->n) return refuse(l, E210, iter->span, "this `scan` has no iterations");
  *reversed = step < 0;
  out->count = items->n;
  out->step = *reversed ? -step : step;
  out->low = items->at[*reversed ? items->n - 1 : 0].as.integer;
  return true;
}

/* Returns the slice of this iteration from a tensor outside of the loop. */
static Value part_of_round(Lower *l, const Scan *s, Value x, Span span)
{
  Datum d = append(l, span, OP_turn, &x, 1, ATTRS({"loop", {.i = s->loop}}));
  return d_is(d, D_error) ? (Value){0} : d.as.tensor;
}

/* Makes a tensor of all values of t outside of the loop; returns its slice of this iteration. */
static Value make_t(Lower *l, const Scan *s, Span span)
{
  Datum table = append(l, span, OP_indices, NULL, 0, ir_shape_attrs(l->c, &s->count, 1));
  if (!d_is(table, D_error) && s->step != 1)
    table = tensor_binary(l, OPER_mul, table, d_int(s->step), span);
  if (!d_is(table, D_error) && s->low)
    table = tensor_binary(l, OPER_add, table, d_int(s->low), span);
  if (d_is(table, D_error)) return (Value){0};
  return part_of_round(l, s, table.as.tensor, span);
}

/* ---- what is carried ---- */

/* Returns the carried value at the start of an iteration: a tensor, or a list of tensors. */
static Datum carry_in(Lower *l, Scan *s, Datum before, Span span)
{
  if (before.kind == D_list) {
    Datum *at = arena_array(l->arena, Datum, before.n + 1);
    bool good = true;
    for (uint32_t i = 0; i < before.n; i++) {
      at[i] = carry_in(l, s, before.as.list[i], span);
      good = good && !d_is(at[i], D_error);
    }
    Datum out = d_list(at, before.n);
    out.tuple = before.tuple;
    return good ? out : d_of(D_error);
  }
  Value v = as_tensor(l, before, span);
  if (!v.id) return d_of(D_error);
  return append(l, span, OP_carry, &v, 1,
                ATTRS({"loop", {.i = s->loop}}, {"index", {.i = s->n_carried++}}));
}

/* Checks that an iteration keeps the sizes of a carried value, and its type if that is an integer.
 * Pass precision decides float types. */
static bool keeps_shape(Lower *l, const char *name, Value in, Value out, Span span)
{
  const Node *a = ir_node(l->g, in), *b = ir_node(l->g, out);
  bool floats = dtype_is_float(a->dtype) && dtype_is_float(b->dtype);
  if (ir_same_dims(a, b) && (floats || a->dtype == b->dtype)) return true;
  bool sizes = !ir_same_dims(a, b);
  fail(l, E309, span, "carried `%s` enters as %s and leaves as %s", name,
       sizes ? ir_dims_text(l->c, a) : ir_type_text(l->c, a),
       sizes ? ir_dims_text(l->c, b) : ir_type_text(l->c, b));
  if (sizes && !a->rank)
    return diag_help(l->c,
                     "a carried number stays a number; to carry a tensor, begin with `zeros(%s)`",
                     ir_dims_text(l->c, b));
  if (!sizes && a->dtype == AMPC_I64 && dtype_is_float(b->dtype))
    return diag_help(l->c, "begin with a float, such as 0.0");
  return diag_help(
      l->c, "a carried value keeps its shape; for a value that grows, write `emit all = %s`", name);
}

/* `in` is the value at the start of an iteration, `out` the value at its end. Returns the value
 * after the loop. */
static Datum carry_out(Lower *l, const char *name, Datum in, Datum out, Span span)
{
  if (in.kind == D_list && out.kind == D_list && in.n == out.n) {
    Datum *at = arena_array(l->arena, Datum, in.n + 1);
    bool good = true;
    for (uint32_t i = 0; i < in.n; i++) {
      at[i] = carry_out(l, name, in.as.list[i], out.as.list[i], span);
      good = good && !d_is(at[i], D_error);
    }
    Datum list = d_list(at, in.n);
    list.tuple = in.tuple;
    return good ? list : d_of(D_error);
  }
  if (d_is(in, D_error) || d_is(out, D_error)) return d_of(D_error);
  if (in.kind == D_list || out.kind == D_list)
    return fail(l, E309, span, "carried `%s` enters as %s and leaves as %s", name,
                d_kind_text(l, in), d_kind_text(l, out));
  Value v = as_tensor(l, out, span);
  if (!v.id || !keeps_shape(l, name, in.as.tensor, v, span)) return d_of(D_error);
  return append(l, span, OP_next, (Value[]){in.as.tensor, v}, 2, NULL);
}

/* ---- emit ---- */

void exec_emit(Lower *l, Frame *f, const Stmt *st)
{
  const Name *name = &st->as.named.name;
  Scan *s = f->scan;
  if (f->kind != FRAME_scan) {
    fail(l, E210, st->span, "`emit` stands in `scan` only");
    return;
  }
  Datum d = eval(l, f->scope, st->as.named.value);
  for (uint32_t i = 0; i < s->emitted.n; i++) {
    if (strcmp(s->emitted.at[i].name, name->text) != 0) continue;
    fail(l, E210, name->span, "`%s` is emitted twice in an iteration", name->text);
    diag_note(l->c, s->emitted.at[i].span, "the first time is here");
    return;
  }
  Value v = as_tensor(l, d, st->as.named.value->span);
  Datum all =
      v.id ? append(l, st->as.named.value->span, OP_stack, &v, 1, ATTRS({"loop", {.i = s->loop}}))
           : d_of(D_error);
  Value stacked = d_is(all, D_error) ? (Value){0} : all.as.tensor;
  vec_push(l->arena, &s->emitted, ((Emitted){name->text, stacked, name->span}));
}

/* ---- the statement ---- */

/* Binds the names that the loop would have bound to D_error, after a mistake. */
static void bind_nothing(Lower *l, Scope *to, const Stmt *st)
{
  const NameList *carried = &st->as.scan.carry;
  for (uint32_t i = 0; i < carried->n; i++)
    scope_bind(l, to, carried->at[i].text, d_of(D_error), carried->at[i].span);
  for (uint32_t i = 0; i < st->as.scan.body.n; i++) {
    const Stmt *inner = st->as.scan.body.at[i];
    if (inner->kind == STMT_emit)
      scope_bind(l, to, inner->as.named.name.text, d_of(D_error), inner->span);
  }
}

static bool may_stand(Lower *l, const Stmt *st)
{
  if (!l->g->regions.at[l->at.region].checkpoint) return true;
  fail(l, E210, st->span, "`scan` cannot stand in a call of `checkpoint`");
  return diag_help(l->c, "call `checkpoint` for the code before and after the loop");
}

/* Elaborates an iteration: binds its names, runs its body, and then binds the results. All values
 * are computed before a name is bound. */
static void exec_rounds(Lower *l, Frame *f, const Stmt *st, Scan *s)
{
  const NameList *carried = &st->as.scan.carry;
  Datum *in = arena_array(l->arena, Datum, carried->n + 1), *out = in;
  bool good = true;
  for (uint32_t i = 0; i < carried->n; i++) {
    Span span = carried->at[i].span;
    in[i] = carry_in(l, s, lookup(l, f->scope, carried->at[i].text, span), span);
    good = good && !d_is(in[i], D_error);
  }
  Frame inner = {.kind = FRAME_scan,
                 .scope = scope_new(l, f->scope, f->scope->file, f->scope->self),
                 .scan = s};
  l->at.loop = s->loop;
  s->t = make_t(l, s, st->as.scan.name.span);
  scope_bind(l, inner.scope, st->as.scan.name.text, d_tensor(s->t), st->as.scan.name.span);
  for (uint32_t i = 0; i < carried->n; i++)
    scope_bind(l, inner.scope, carried->at[i].text, in[i], carried->at[i].span);
  exec_block(l, &inner, &st->as.scan.body);
  out = arena_array(l->arena, Datum, carried->n + 1);
  for (uint32_t i = 0; i < carried->n && good; i++)
    out[i] = carry_out(l, carried->at[i].text, in[i],
                       scope_find(inner.scope, carried->at[i].text)->value, carried->at[i].span);
  l->at.loop = l->g->loops.at[s->loop].parent;
  for (uint32_t i = 0; i < carried->n; i++)
    scope_bind(l, f->scope, carried->at[i].text, good ? out[i] : d_of(D_error),
               carried->at[i].span);
  for (uint32_t i = 0; i < s->emitted.n; i++) {
    const Emitted *e = &s->emitted.at[i];
    Datum all = e->value.id ? d_tensor(e->value) : d_of(D_error);
    scope_bind(l, f->scope, e->name, all, e->span);
    name_node(l, f->scope, e->name, all);
  }
  note_ended_names(l, f->scope, inner.scope, "`scan`");
}

void exec_scan(Lower *l, Frame *f, const Stmt *st)
{
  Scan s = {.outer = l->scan};
  DatumVec items = {0};
  const Expr *iter = st->as.scan.iter;
  bool reversed;
  if (!may_stand(l, st) || !iterate(l, eval(l, f->scope, iter), iter->span, &items) ||
      !find_turns(l, st, &items, &s, &reversed)) {
    bind_nothing(l, f->scope, st);
    return;
  }
  s.loop = ir_add_loop(l->c, (Loop){.count = s.count,
                                    .reversed = reversed,
                                    .parent = l->at.loop,
                                    .span = diag_user_span(l->c, st->span)});
  l->scan = &s;
  exec_rounds(l, f, st, &s);
  l->scan = s.outer;
}

/* ---- x[:, t] ---- */

static const Scan *scan_of(const Lower *l, Datum d)
{
  const Scan *s = d.kind == D_tensor ? l->scan : NULL;
  while (s && s->t.id != d.as.tensor.id) s = s->outer;
  return s;
}

/* False for a value that is made in the loop: it has no slices, and t is just a number there. */
bool is_scan_slice(const Lower *l, Datum d, Value x)
{
  const Scan *s = scan_of(l, d);
  return s && !ir_loop_within(l->g, ir_loop_of(l->g, x), s->loop);
}

/* Moves `axis` of x to the front, once, before the loop. */
static Value axis_first(Lower *l, Value x, uint32_t axis, Span span)
{
  uint32_t axes[MAX_RANK] = {axis}, n = 1, rank = ir_node(l->g, x)->rank;
  for (uint32_t i = 0; i < rank; i++)
    if (i != axis) axes[n++] = i;
  if (axis == 0) return x;
  Datum d = append(l, span, OP_permute, &x, 1, ir_axis_attrs(l->c, axes, rank));
  return d_is(d, D_error) ? (Value){0} : d.as.tensor;
}

Value index_by_scan(Lower *l, Value x, uint32_t axis, Datum t, Span span)
{
  const Scan *s = scan_of(l, t);
  int64_t size = ir_node(l->g, x)->dim[axis], last = s->low + (s->count - 1) * s->step;
  if (s->low < 0 || last >= size) {
    fail(l, E209, span, "index %lld of axis %u with %lld elements",
         (long long)(s->low < 0 ? s->low : last), axis, (long long)size);
    return (Value){0};
  }
  x = axis_first(l, x, axis, span);
  if (x.id && (s->low || s->step > 1 || s->count < size)) {
    Datum part = append(l, span, OP_slice, &x, 1,
                        ATTRS({"dim", {.i = 0}}, {"start", {.i = s->low}},
                              {"stop", {.i = last + 1}}, {"step", {.i = s->step}}));
    x = d_is(part, D_error) ? (Value){0} : part.as.tensor;
  }
  return x.id ? part_of_round(l, s, x, span) : x;
}

/* ---- random numbers ---- */

/* Returns the slice of this iteration. `table` has a leading axis for each loop at the cursor. */
static Value slice_of_round(Lower *l, Value table, uint16_t loop)
{
  if (!loop || !table.id) return table;
  table = slice_of_round(l, table, l->g->loops.at[loop].parent);
  if (!table.id) return table;
  return ir_turn(l->c, &l->at, table, loop);
}

/* With one table for all iterations, each iteration has its own numbers, and backward reads the
 * numbers of forward. */
Value draw_before_scan(Lower *l, Value v)
{
  Graph *g = l->g;
  const Node drawn = *ir_node(g, v);
  g->nodes.n--; /* only its op and shape were needed */
  bool drops = drawn.n_in > 0;
  OpKind op = drops ? OP_uniform : drawn.op;
  int64_t dim[2 * MAX_RANK];
  uint32_t rank = 0, n = 0;
  for (uint16_t loop = l->at.loop; loop; loop = g->loops.at[loop].parent) rank++;
  if (rank + drawn.rank > MAX_RANK) {
    fail(l, E311, drawn.span, "%s in `scan` draws random numbers with %u axes; the maximum is %d",
         op_row(drawn.op)->name, rank + drawn.rank, MAX_RANK);
    return (Value){0};
  }
  for (uint16_t loop = l->at.loop; loop; loop = g->loops.at[loop].parent)
    dim[rank - ++n] = g->loops.at[loop].count;
  for (uint32_t i = 0; i < drawn.rank; i++) dim[rank++] = drawn.dim[i];
  Value table = ir_append(l->c, &l->at, op, NULL, 0, ir_shape_attrs(l->c, dim, rank));
  if (!table.id) return table;
  ir_node(g, table)->stream = g->n_streams++;
  Value number = slice_of_round(l, table, l->at.loop);
  if (!drops || !number.id) return number;
  return ir_append(l->c, &l->at, OP_drop_parts, (Value[]){drawn.in[0], number}, 2,
                   ATTRS({"p", {.f = attr_float(&drawn, "p")}}));
}
