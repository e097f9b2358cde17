/* Part of pass decode: the node of the step that computes a node of the block for new positions. */
#include "decode.h"
#include <math.h>
#include <string.h>

static const char plain_help[] =
    "`amp infer --no-cache` computes each token from all tokens before it";

static bool any_of(const Decode *d, const Node *n, Kind kind)
{
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id && decode_info(d, n->in[i])->kind == kind) return true;
  return false;
}

bool decode_is_plain(const Decode *d, Value v)
{
  return !v.id || decode_keys(d, v.id, MAX_RANK) == -1;
}

bool decode_refuse_op(Decode *d, uint32_t id)
{
  return decode_refuse(d, &d->old[id], "it is not known what it reads of earlier positions",
                       plain_help);
}

/* True if n works along the keys of input 0: each element may then read later ones, unless all of
 * these are one number. */
static bool along_keys(const Decode *d, const Node *n, int64_t axis)
{
  const Info *x = decode_info(d, n->in[0]);
  return x->kind == NOW && !x->ahead.known && decode_keys(d, n->in[0].id, x->now) == axis;
}

bool decode_refuse_keys(Decode *d, uint32_t id)
{
  return decode_looks_ahead(d, &d->old[id], "keys after its position, which no mask excludes");
}

/* Finds the columns in front of the keys: those of inputs with keys, and the rows in front of an
 * input that is read whole, whose positions become keys. Constants have the same elements for any
 * length, so all their other columns are in front. Returns false if two inputs differ. */
static bool find_front(Decode *d, uint32_t id, const Value *in, int keys)
{
  const Node *n = &d->old[id];
  bool any = false;
  if (keys >= 0) d->info[id].front = n->dim[keys] - d->length;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!decode_is_now(d, n, i)) continue;
    const Info *x = decode_info(d, n->in[i]);
    bool whole = in[i].id == d->whole[n->in[i].id].id;
    if (!whole && decode_keys(d, n->in[i].id, x->now) == -1) continue;
    int64_t front = whole ? x->early : x->front;
    if (any && front != d->info[id].front) return false;
    d->info[id].front = front;
    any = true;
  }
  return true;
}

bool derive_finish(Decode *d, uint32_t id, const Value *in, uint32_t now, int64_t outer)
{
  int keys = decode_keys(d, id, now);
  if (keys == -2) return decode_refuse_op(d, id);
  for (uint32_t i = 0; i < d->old[id].n_in; i++)
    if (d->old[id].in[i].id && !in[i].id) return false;
  d->info[id] = (Info){.kind = NOW, .now = now, .outer = outer};
  if (!find_front(d, id, in, keys) && keys >= 0) return decode_refuse_op(d, id);
  Node n = decode_copy(d, id, in, (int)now);
  d->map[id] = decode_add(d, id, &n);
  return d->map[id].id != 0;
}

/* Adds the node with the mapped inputs and the sizes that it had. */
static bool keep(Decode *d, uint32_t id, Kind kind)
{
  const Node *old = &d->old[id];
  Value in[old->n_in + 1];
  for (uint32_t i = 0; i < old->n_in; i++) in[i] = d->map[old->in[i].id];
  Node n = decode_copy(d, id, in, -1);
  d->info[id].kind = kind;
  d->map[id] = decode_add(d, id, &n);
  return d->map[id].id != 0;
}

/* ---- elementwise ops, and others whose inputs broadcast to one shape ---- */

/* Returns input i of a node of that rank whose positions are along axis `now`. The axes of the
 * input are those of the node, counted from the right. */
static Value aligned(Decode *d, uint32_t id, uint32_t i, uint32_t rank, uint32_t now)
{
  Value v = d->old[id].in[i];
  const Node *x = &d->old[v.id];
  const Info *own = decode_info(d, v);
  int axis = (int)now - (int)rank + (int)x->rank;
  bool lacks = axis < 0 || x->dim[axis] == 1;
  if (own->kind == NOW && (int)own->now != axis) return decode_whole(d, v.id);
  if (own->kind == NOW) return decode_now(d, v.id);
  return lacks ? d->map[v.id] : decode_pick(d, v.id, (uint32_t)axis);
}

/* Finds the axis of the new positions: that of an input that has keys, too, or else the first axis
 * of positions. Those of another axis are keys: each new position meets all positions. */
static uint32_t now_of_inputs(const Decode *d, uint32_t id, int64_t *outer)
{
  const Node *n = &d->old[id];
  uint32_t now = 0;
  *outer = 1;
  while (now < n->rank && decode_share(d, id, now) <= 0) now++;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!decode_is_now(d, n, i)) continue;
    const Info *x = decode_info(d, n->in[i]);
    uint32_t axis = x->now + n->rank - d->old[n->in[i].id].rank;
    bool pairs = decode_keys(d, n->in[i].id, x->now) >= 0;
    if (pairs || axis == now) now = axis, *outer = x->outer;
    if (pairs) break;
  }
  return now;
}

/* A norm of images or sequences with fixed statistics, which belong to the axis of channels. */
static bool derive_channels(Decode *d, uint32_t id, int64_t channel)
{
  const Node *n = &d->old[id];
  const Info *x = decode_info(d, n->in[0]);
  Value in[n->n_in];
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (i && n->in[i].id && decode_info(d, n->in[i])->kind != CONST) return decode_refuse_op(d, id);
    in[i] = i ? d->map[n->in[i].id] : decode_now(d, n->in[0].id);
  }
  return x->now != channel && x->kind == NOW ? derive_finish(d, id, in, x->now, x->outer)
                                             : decode_refuse_op(d, id);
}

/* Whether constants have as many columns in front: find_front. */
static bool fronts_fit(const Decode *d, uint32_t id, int keys)
{
  const Node *n = &d->old[id];
  for (uint32_t i = 0; i < n->n_in && keys >= 0; i++) {
    uint32_t in = n->in[i].id, axis = (uint32_t)keys - n->rank + d->old[in].rank;
    if (!in || d->info[in].kind != CONST || axis >= MAX_RANK || !decode_share(d, in, axis))
      continue;
    if (d->old[in].dim[axis] - d->length != d->info[id].front) return false;
  }
  return true;
}

static bool derive_broadcast(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  Value in[n->n_in + 1];
  int64_t outer;
  uint32_t now = now_of_inputs(d, id, &outer);
  uint32_t channel;
  if (attr_find(op_of(n), "channel", &channel)) return derive_channels(d, id, n->attr[channel].i);
  for (uint32_t i = 0; i < n->n_in; i++) {
    in[i] = n->in[i].id ? aligned(d, id, i, n->rank, now) : (Value){0};
    if (n->in[i].id && !in[i].id) return false;
  }
  if (!derive_finish(d, id, in, now, outer)) return false;
  int keys = decode_keys(d, id, now);
  if (!fronts_fit(d, id, keys)) return decode_refuse_op(d, id);
  ahead_of_map(d, id, keys);
  return true;
}

/* ---- moves and views of one input ---- */

/* A view keeps the rows in front, and numbers that it does not change. */
static bool derive_view(Decode *d, uint32_t id, uint32_t now, int64_t outer)
{
  Info x = *decode_info(d, d->old[id].in[0]);
  if (x.rows.id) {
    int64_t chunk = d->chunk;
    d->chunk = x.early;
    Node n = decode_copy(d, id, &x.rows, (int)now);
    x.rows = decode_add(d, id, &n);
    d->chunk = chunk;
  }
  if (!derive_finish(d, id, &d->map[d->old[id].in[0].id], now, outer)) return false;
  bool keys = decode_keys(d, d->old[id].in[0].id, x.now) != -1;
  if (keys && decode_keys(d, id, now) < 0) x.ahead = (Maybe){0};
  x.now = now;
  x.outer = outer;
  d->info[id] = x;
  return true;
}

/* True if the reshape leaves the axis of the keys as it is. */
static bool keeps_keys(const Decode *d, uint32_t id)
{
  const Node *n = &d->old[id], *x = &d->old[n->in[0].id];
  int from = decode_keys(d, n->in[0].id, decode_info(d, n->in[0])->now);
  int to = decode_keys(d, id, d->info[id].now);
  if (from < 0 || to < 0) return from == to;
  return x->dim[from] == n->dim[to] && dims_product(x->dim + from, x->rank - (uint32_t)from) ==
                                           dims_product(n->dim + to, n->rank - (uint32_t)to);
}

/* A reshape keeps the order of elements, so as many groups of positions as before follow each
 * other. The axis of the result with the positions is where these groups end. */
static bool derive_reshape(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id], *x = &d->old[n->in[0].id];
  const Info *from = decode_info(d, n->in[0]);
  int64_t groups = dims_product(x->dim, from->now) * from->outer, before = 1;
  int64_t all = decode_share(d, n->in[0].id, from->now) == 1 ? x->dim[from->now] : d->length;
  for (uint32_t i = 0; i < n->rank; before *= n->dim[i++])
    if (groups % before == 0 && before * n->dim[i] % (groups * all) == 0 &&
        decode_share(d, id, i) > 0) {
      if (!derive_view(d, id, i, groups / before)) return false;
      if (keeps_keys(d, id)) return true;
      d->info[id].ahead.known = false;
      return from->ahead.known || decode_refuse_op(d, id);
    }
  return decode_refuse_op(d, id);
}

/* A slice of the keys that may also cut off what is beside them. */
static bool derive_columns(Decode *d, uint32_t id, const Info *from, int64_t start, int64_t stop)
{
  if (!derive_view(d, id, from->now, from->outer)) return false;
  bool all = start <= from->front && stop >= from->front + d->length;
  d->info[id].front -= start;
  d->info[id].ahead.known = from->ahead.known && all; /* the key of the position may be lacking */
  return true;
}

static bool derive_permuted(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  const Info *from = decode_info(d, n->in[0]);
  uint32_t now = 0;
  while (ir_permuted_axis(n, now) != from->now) now++;
  return derive_view(d, id, now, from->outer);
}

/* A slice along the positions: only that of the last one. */
static bool derive_slice(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  const Info *from = decode_info(d, n->in[0]);
  if (ir_same_dims(n, &d->old[n->in[0].id])) { /* the whole axis */
    d->info[id] = *from;
    d->map[id] = d->map[n->in[0].id];
    return true;
  }
  int keys = decode_keys(d, n->in[0].id, from->now);
  if (keys == attr_int(n, "dim") && keys == decode_keys(d, id, from->now) &&
      decode_share(d, n->in[0].id, (uint32_t)keys) == 1)
    return derive_columns(d, id, from, attr_int(n, "start"), attr_int(n, "stop"));
  if (along_keys(d, n, attr_int(n, "dim"))) return decode_refuse_keys(d, id);
  if (attr_int(n, "dim") != from->now) return derive_view(d, id, from->now, from->outer);
  bool last = attr_int(n, "start") == d->length - 1 && n->dim[from->now] == 1 && !from->early;
  if (!last && attr_int(n, "step") == 1 && decode_share(d, id, from->now) == 1)
    return derive_shift(d, id);
  if (!last)
    return decode_refuse(d, n, "it selects some of the positions",
                         "return the logits of all positions, or of the last one");
  Node copy = decode_copy(d, id, &d->map[n->in[0].id], -1);
  attr_set_int(&copy, "start", d->chunk - 1);
  attr_set_int(&copy, "stop", d->chunk);
  d->info[id].kind = LAST;
  d->map[id] = decode_add(d, id, &copy);
  return true;
}

/* Columns beside keys, such as learned sinks. */
static bool derive_beside(Decode *d, uint32_t id, const Value *in, uint32_t now, int64_t outer)
{
  const Node *n = &d->old[id];
  uint32_t dim = (uint32_t)attr_int(n, "dim"), with = n->n_in;
  int64_t before = 0;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!decode_share(d, n->in[i].id, dim)) continue;
    if (with < n->n_in || !decode_is_now(d, n, i) || decode_info(d, n->in[i])->now != now)
      return decode_refuse_op(d, id);
    with = i;
    for (uint32_t k = 0; k < i; k++) before += d->old[n->in[k].id].dim[dim];
  }
  if (!derive_finish(d, id, in, now, outer)) return false;
  d->info[id].front += before;
  d->info[id].ahead = decode_info(d, n->in[with])->ahead;
  return true;
}

/* Tensors along another axis than that of the positions; one without tokens has its part. */
static bool derive_cat(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  Value in[n->n_in];
  int64_t outer;
  uint32_t now = now_of_inputs(d, id, &outer);
  if (attr_int(n, "dim") == now) return derive_prefix(d, id);
  for (uint32_t i = 0; i < n->n_in; i++) {
    in[i] = aligned(d, id, i, n->rank, now);
    if (!in[i].id) return false;
  }
  int keys = decode_keys(d, id, now);
  if (keys == attr_int(n, "dim")) return derive_beside(d, id, in, now, outer);
  if (!derive_finish(d, id, in, now, outer)) return false;
  if (!fronts_fit(d, id, keys)) return decode_refuse_op(d, id);
  ahead_of_cat(d, id, keys);
  return true;
}

/* Rows of a table by tokens; or features of a NOW value by fixed numbers. */
static bool derive_select(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  uint32_t axis = (uint32_t)attr_int(n, "axis");
  Value in[] = {d->map[n->in[0].id], decode_now(d, n->in[1].id)};
  const Info *x = decode_info(d, n->in[0]), *index = decode_info(d, n->in[1]);
  if (x->kind == CONST && index->kind == NOW)
    return derive_finish(d, id, in, axis + index->now, index->outer);
  if (index->kind != CONST || x->now == axis || !decode_is_plain(d, n->in[1]))
    return decode_refuse_op(d, id);
  if (along_keys(d, n, axis)) return decode_refuse_keys(d, id);
  uint32_t more = d->old[n->in[1].id].rank;
  in[0] = decode_now(d, n->in[0].id);
  return derive_finish(d, id, in, x->now < axis ? x->now : x->now + more - 1, x->outer);
}

static bool derive_move(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  const Info *from = decode_info(d, n->in[0]);
  if (op_has(n, T_permutes)) return derive_permuted(d, id);
  if (n->op == OP_slice) return derive_slice(d, id);
  if (n->op == OP_cat) return derive_cat(d, id);
  if (n->op == OP_index_select) return derive_select(d, id);
  if (n->op == OP_expand)
    return derive_view(d, id, from->now + n->rank - d->old[n->in[0].id].rank, from->outer);
  uint32_t at;
  bool along = attr_find(op_of(n), "dim", &at);
  bool same = along && n->rank == d->old[n->in[0].id].rank;
  if (along && along_keys(d, n, n->attr[at].i)) return decode_refuse_keys(d, id);
  if (n->op == OP_pad && attr_int(n, "dim") == from->now) return derive_pad(d, id);
  if (!same || from->kind != NOW || n->attr[at].i == from->now) return decode_refuse_op(d, id);
  return derive_broadcast(d, id);
}

/* ---- rows ---- */

static bool derive_row(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  if (!decode_is_now(d, n, 0)) return decode_refuse_op(d, id);
  const Node *x = &d->old[n->in[0].id];
  const Info *from = decode_info(d, n->in[0]);
  uint64_t worked = decode_worked_axes(n);
  int keys = decode_keys(d, n->in[0].id, from->now);
  if (worked >> from->now & 1) return decode_looks_ahead(d, n, "all positions");
  bool over_keys = keys >= 0 && worked >> keys & 1;
  Maybe ahead = {0};
  if (over_keys && !maybe_of_row(n, from->ahead, &ahead))
    return decode_refuse_keys(d, id) ||
           diag_help(d->c, "multiply scores before the mask; a factor behind it must be positive "
                           "for any weights: exp(t), softplus(t), t * t + 1e-6");
  Value in[n->n_in];
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Node *own = &d->old[n->in[i].id];
    bool same = n->in[i].id && own->rank == x->rank, now = decode_is_now(d, n, i);
    if (!same && (now || !decode_is_plain(d, n->in[i]))) return decode_refuse_op(d, id);
    in[i] = same ? aligned(d, id, i, x->rank, from->now) : d->map[n->in[i].id];
  }
  uint32_t now = from->now;
  for (uint32_t i = 0; i < from->now && n->rank < x->rank; i++) now -= worked >> i & 1;
  if (!derive_finish(d, id, in, now, from->outer)) return false;
  if (!fronts_fit(d, id, decode_keys(d, id, now))) return decode_refuse_op(d, id);
  d->info[id].ahead = ahead;
  d->info[id].ahead.sign = SIGN_any;
  return true;
}

/* ---- ops along an axis ---- */

static bool derive_along(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  if (!decode_is_now(d, n, 0)) return decode_refuse_op(d, id);
  const Info *x = decode_info(d, n->in[0]);
  if (attr_int(n, "dim") == x->now) return derive_cumulative(d, id);
  return decode_keys(d, n->in[0].id, x->now) < 0 ? derive_broadcast(d, id)
                                                 : decode_refuse_op(d, id);
}

/* ---- effects ---- */

/* A check of indices: those of the chunk. */
static bool derive_check(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id], *x = &d->old[n->in[0].id];
  const Info *from = decode_info(d, n->in[0]);
  Node copy = decode_copy(d, id, &d->map[n->in[0].id], -1);
  ampc_check check = d->g->checks.at[attr_int(n, "check")];
  if (from->kind == NOW) check.dim[from->now] = x->dim[from->now] / d->length * d->chunk;
  attr_set_int(&copy, "check", d->g->checks.n);
  vec_push(d->c->arena, &d->g->checks, check);
  d->map[id] = decode_add(d, id, &copy);
  return true;
}

static bool derive_output(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  const Info *from = decode_info(d, n->in[0]);
  if (d->block) return true; /* a prompt has no results */
  bool pairs = from->kind == NOW && decode_keys(d, n->in[0].id, from->now) != -1;
  if (pairs || (from->kind == CONST && !decode_is_plain(d, n->in[0])))
    return decode_refuse_op(d, id);
  Value in = from->kind == NOW ? decode_now(d, n->in[0].id) : d->map[n->in[0].id];
  bool good = from->kind == NOW ? derive_finish(d, id, &in, from->now, from->outer)
                                : keep(d, id, from->kind);
  if (good) d->g->outputs.at[attr_int(n, "index")].value = d->map[id];
  return good;
}

/* ---- all ops ---- */

/* The tokens: their axis 1 is the positions. */
static bool derive_source(Decode *d, uint32_t id)
{
  Node n = decode_copy(d, id, NULL, -1);
  attr_set_int(&n, "index", d->g->blocks.at[d->block].first_source);
  d->info[id] = (Info){.kind = NOW, .now = 1, .outer = 1};
  d->map[id] = decode_add(d, id, &n);
  return true;
}

/* The value itself, perhaps in another type. */
static bool derive_same(Decode *d, uint32_t id)
{
  const Info *from = decode_info(d, d->old[id].in[0]);
  if (!derive_view(d, id, from->now, from->outer)) return false;
  if (!dtype_is_float(d->old[id].dtype)) d->info[id].ahead.sign = SIGN_any; /* 0.5 becomes 0 */
  return true;
}

static bool derive_now(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  uint32_t at;
  switch (op_of(n)->tmpl) {
  case TMPL_alias:
    return n->op == OP_reshape ? derive_reshape(d, id) : derive_same(d, id);
  case TMPL_map:
    return op_has(n, T_casts) ? derive_same(d, id) : derive_broadcast(d, id);
  case TMPL_move:
    return derive_move(d, id);
  case TMPL_row:
    return derive_row(d, id);
  case TMPL_gemm:
    return derive_product(d, id);
  case TMPL_conv:
    return decode_is_now(d, n, 0) ? derive_window(d, id) : decode_refuse_op(d, id);
  default:
    if (attr_find(op_of(n), "kernel0", &at) && n->n_in == 1) return derive_window(d, id);
    if (op_has(n, T_along)) return derive_along(d, id);
    return op_has(n, T_tiles) ? derive_attention(d, id) : decode_refuse_op(d, id);
  }
}

/* A value of the last position: all that it is combined with belongs to no position. */
static bool derive_last(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (decode_is_now(d, n, i)) return decode_looks_ahead(d, n, "a value of the last position");
    if (n->in[i].id && decode_info(d, n->in[i])->kind == CONST && !decode_is_plain(d, n->in[i]))
      return decode_refuse_op(d, id);
  }
  return keep(d, id, LAST);
}

bool derive_node(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  if (op_draws(n))
    return decode_refuse(d, n, "it draws random numbers", "an infer block of a decoder draws none");
  for (uint32_t i = 0; i < n->rank; i++)
    if (any_of(d, n, NOW) && decode_share(d, id, i) < 0) return decode_refuse_op(d, id);
  if (n->n_in && !decode_same_numbers(d, id)) return decode_depends(d, id); /* a scale of 1 / S */
  if (n->op == OP_source) return derive_source(d, id);
  if (n->op == OP_output) return derive_output(d, id);
  uint32_t check;
  if (attr_find(op_of(n), "check", &check)) return derive_check(d, id);
  if (n->loop) return derive_in_loop(d, id);
  if (op_has(n, T_crosses)) return derive_crossing(d, id);
  if (!any_of(d, n, NOW) && !any_of(d, n, LAST)) return keep(d, id, CONST);
  if (!decode_inputs_same(d, id)) return false;
  if (any_of(d, n, LAST)) return derive_last(d, id);
  return derive_now(d, id);
}
