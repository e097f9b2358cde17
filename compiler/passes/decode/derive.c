/* Part of pass decode: the node of the step that computes a node of the block for new positions. */
#include "decode.h"
#include <math.h>
#include <string.h>

static const char plain_help[] =
    "`amp infer --no-cache` computes each token from all tokens before it";

static const Info *info_of(const Decode *d, Value v)
{
  return &d->info[v.id];
}

static bool is_now(const Decode *d, const Node *n, uint32_t i)
{
  return i < n->n_in && n->in[i].id && info_of(d, n->in[i])->kind == NOW;
}

static bool any_of(const Decode *d, const Node *n, Kind kind)
{
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id && info_of(d, n->in[i])->kind == kind) return true;
  return false;
}

/* True if the sizes of a value do not depend on the number of positions. */
static bool is_plain(const Decode *d, Value v)
{
  return !v.id || decode_keys(d, v.id, MAX_RANK) == -1;
}

static bool refuse_op(Decode *d, uint32_t id)
{
  return decode_refuse(d, &d->old[id], "it is not known what it reads of earlier positions",
                       plain_help);
}

/* True if n works along the keys of input 0: each element may then read later ones, unless all of
 * these are one number. */
static bool along_keys(const Decode *d, const Node *n, int64_t axis)
{
  const Info *x = info_of(d, n->in[0]);
  return x->kind == NOW && !x->ahead.known && decode_keys(d, n->in[0].id, x->now) == axis;
}

static bool refuse_keys(Decode *d, uint32_t id)
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
    if (!is_now(d, n, i)) continue;
    const Info *x = info_of(d, n->in[i]);
    bool whole = in[i].id == d->whole[n->in[i].id].id;
    if (!whole && decode_keys(d, n->in[i].id, x->now) == -1) continue;
    int64_t front = whole ? x->early : x->front;
    if (any && front != d->info[id].front) return false;
    d->info[id].front = front;
    any = true;
  }
  return true;
}

/* Adds the node with these inputs. It is a NOW value along axis `now`. */
static bool finish(Decode *d, uint32_t id, const Value *in, uint32_t now, int64_t outer)
{
  int keys = decode_keys(d, id, now);
  if (keys == -2) return refuse_op(d, id);
  for (uint32_t i = 0; i < d->old[id].n_in; i++)
    if (d->old[id].in[i].id && !in[i].id) return false;
  d->info[id] = (Info){.kind = NOW, .now = now, .outer = outer};
  if (!find_front(d, id, in, keys) && keys >= 0) return refuse_op(d, id);
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
  const Info *own = info_of(d, v);
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
    if (!is_now(d, n, i)) continue;
    const Info *x = info_of(d, n->in[i]);
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
  const Info *x = info_of(d, n->in[0]);
  Value in[n->n_in];
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (i && n->in[i].id && info_of(d, n->in[i])->kind != CONST) return refuse_op(d, id);
    in[i] = i ? d->map[n->in[i].id] : decode_now(d, n->in[0].id);
  }
  return x->now != channel && x->kind == NOW ? finish(d, id, in, x->now, x->outer)
                                             : refuse_op(d, id);
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
  if (!finish(d, id, in, now, outer)) return false;
  int keys = decode_keys(d, id, now);
  if (!fronts_fit(d, id, keys)) return refuse_op(d, id);
  ahead_of_map(d, id, keys);
  return true;
}

/* ---- moves and views of one input ---- */

/* A view keeps the rows in front, and numbers that it does not change. */
static bool derive_view(Decode *d, uint32_t id, uint32_t now, int64_t outer)
{
  Info x = *info_of(d, d->old[id].in[0]);
  if (x.rows.id) {
    int64_t chunk = d->chunk;
    d->chunk = x.early;
    Node n = decode_copy(d, id, &x.rows, (int)now);
    x.rows = decode_add(d, id, &n);
    d->chunk = chunk;
  }
  if (!finish(d, id, &d->map[d->old[id].in[0].id], now, outer)) return false;
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
  int from = decode_keys(d, n->in[0].id, info_of(d, n->in[0])->now);
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
  const Info *from = info_of(d, n->in[0]);
  int64_t groups = dims_product(x->dim, from->now) * from->outer, before = 1;
  int64_t all = decode_share(d, n->in[0].id, from->now) == 1 ? x->dim[from->now] : d->length;
  for (uint32_t i = 0; i < n->rank; before *= n->dim[i++])
    if (groups % before == 0 && before * n->dim[i] % (groups * all) == 0 &&
        decode_share(d, id, i) > 0) {
      if (!derive_view(d, id, i, groups / before)) return false;
      if (keeps_keys(d, id)) return true;
      d->info[id].ahead.known = false;
      return from->ahead.known || refuse_op(d, id);
    }
  return refuse_op(d, id);
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
  const Info *from = info_of(d, n->in[0]);
  uint32_t now = 0;
  while (ir_permuted_axis(n, now) != from->now) now++;
  return derive_view(d, id, now, from->outer);
}

/* A slice along the positions: only that of the last one. */
static bool derive_slice(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  const Info *from = info_of(d, n->in[0]);
  if (ir_same_dims(n, &d->old[n->in[0].id])) { /* the whole axis */
    d->info[id] = *from;
    d->map[id] = d->map[n->in[0].id];
    return true;
  }
  int keys = decode_keys(d, n->in[0].id, from->now);
  if (keys == attr_int(n, "dim") && keys == decode_keys(d, id, from->now) &&
      decode_share(d, n->in[0].id, (uint32_t)keys) == 1)
    return derive_columns(d, id, from, attr_int(n, "start"), attr_int(n, "stop"));
  if (along_keys(d, n, attr_int(n, "dim"))) return refuse_keys(d, id);
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
    if (with < n->n_in || !is_now(d, n, i) || info_of(d, n->in[i])->now != now)
      return refuse_op(d, id);
    with = i;
    for (uint32_t k = 0; k < i; k++) before += d->old[n->in[k].id].dim[dim];
  }
  if (!finish(d, id, in, now, outer)) return false;
  d->info[id].front += before;
  d->info[id].ahead = info_of(d, n->in[with])->ahead;
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
  if (!finish(d, id, in, now, outer)) return false;
  if (!fronts_fit(d, id, keys)) return refuse_op(d, id);
  ahead_of_cat(d, id, keys);
  return true;
}

/* Rows of a table by tokens; or features of a NOW value by fixed numbers. */
static bool derive_select(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  uint32_t axis = (uint32_t)attr_int(n, "axis");
  Value in[] = {d->map[n->in[0].id], decode_now(d, n->in[1].id)};
  const Info *x = info_of(d, n->in[0]), *index = info_of(d, n->in[1]);
  if (x->kind == CONST && index->kind == NOW)
    return finish(d, id, in, axis + index->now, index->outer);
  if (index->kind != CONST || x->now == axis || !is_plain(d, n->in[1])) return refuse_op(d, id);
  if (along_keys(d, n, axis)) return refuse_keys(d, id);
  uint32_t more = d->old[n->in[1].id].rank;
  in[0] = decode_now(d, n->in[0].id);
  return finish(d, id, in, x->now < axis ? x->now : x->now + more - 1, x->outer);
}

static bool derive_move(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  const Info *from = info_of(d, n->in[0]);
  if (op_has(n, T_permutes)) return derive_permuted(d, id);
  if (n->op == OP_slice) return derive_slice(d, id);
  if (n->op == OP_cat) return derive_cat(d, id);
  if (n->op == OP_index_select) return derive_select(d, id);
  if (n->op == OP_expand)
    return derive_view(d, id, from->now + n->rank - d->old[n->in[0].id].rank, from->outer);
  uint32_t at;
  bool along = attr_find(op_of(n), "dim", &at);
  bool same = along && n->rank == d->old[n->in[0].id].rank;
  if (along && along_keys(d, n, n->attr[at].i)) return refuse_keys(d, id);
  if (n->op == OP_pad && attr_int(n, "dim") == from->now) return derive_pad(d, id);
  if (!same || from->kind != NOW || n->attr[at].i == from->now) return refuse_op(d, id);
  return derive_broadcast(d, id);
}

/* ---- rows ---- */

static bool derive_row(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  if (!is_now(d, n, 0)) return refuse_op(d, id);
  const Node *x = &d->old[n->in[0].id];
  const Info *from = info_of(d, n->in[0]);
  uint64_t worked = decode_worked_axes(n);
  int keys = decode_keys(d, n->in[0].id, from->now);
  if (worked >> from->now & 1) return decode_looks_ahead(d, n, "all positions");
  bool over_keys = keys >= 0 && worked >> keys & 1;
  Maybe ahead = {0};
  if (over_keys && !maybe_of_row(n, from->ahead, &ahead))
    return refuse_keys(d, id) ||
           diag_help(d->c, "multiply scores before the mask; a factor behind it must be positive "
                           "for any weights: exp(t), softplus(t), t * t + 1e-6");
  Value in[n->n_in];
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Node *own = &d->old[n->in[i].id];
    bool same = n->in[i].id && own->rank == x->rank, now = is_now(d, n, i);
    if (!same && (now || !is_plain(d, n->in[i]))) return refuse_op(d, id);
    in[i] = same ? aligned(d, id, i, x->rank, from->now) : d->map[n->in[i].id];
  }
  uint32_t now = from->now;
  for (uint32_t i = 0; i < from->now && n->rank < x->rank; i++) now -= worked >> i & 1;
  if (!finish(d, id, in, now, from->outer)) return false;
  if (!fronts_fit(d, id, decode_keys(d, id, now))) return refuse_op(d, id);
  d->info[id].ahead = ahead;
  d->info[id].ahead.sign = SIGN_any;
  return true;
}

/* ---- products ---- */

typedef struct Operand {
  uint32_t rank, row, depth; /* axes: of the result; of the sum */
} Operand;

static Operand operand_of(const Decode *d, const Node *n, uint32_t i)
{
  uint32_t rank = d->old[n->in[i].id].rank;
  uint32_t at; /* `linear` has no such attributes: its weight is [out, in] */
  bool turned = i == 1;
  if (attr_find(op_of(n), i ? "trans_b" : "trans_a", &at)) turned = n->attr[at].i;
  bool last = i ? !turned : turned; /* the axis of the result is the last one */
  return (Operand){rank, rank - (last ? 1 : 2), rank - (last ? 2 : 1)};
}

/* A product of scores: rows are the new positions, columns all of them. */
static bool derive_scores(Decode *d, uint32_t id, const Operand *b)
{
  const Node *n = &d->old[id];
  const Info *x = info_of(d, n->in[0]), *y = info_of(d, n->in[1]);
  Value in[3] = {decode_now(d, n->in[0].id)};
  bool each = y->now == 0 && x->now == 0 && b->rank == 3; /* positions number the products */
  if (y->now != b->row && !each) return refuse_op(d, id);
  in[1] = each ? decode_now(d, n->in[1].id) : decode_whole(d, n->in[1].id);
  return finish(d, id, in, x->now, x->outer);
}

/* The same with keys that are constants: positions. */
static bool derive_places(Decode *d, uint32_t id, const Operand *b)
{
  const Node *n = &d->old[id];
  const Info *x = info_of(d, n->in[0]);
  uint32_t y = n->in[1].id;
  bool each = x->now == 0 && b->rank == 3 && decode_share(d, y, 0) != 0;
  int keys = decode_keys(d, y, each ? 0 : MAX_RANK);
  if (keys != (int)b->row && !(each && keys == -1)) return refuse_op(d, id);
  Value in[3] = {decode_now(d, n->in[0].id), each ? decode_pick(d, y, 0) : d->map[y]};
  return finish(d, id, in, x->now, x->outer);
}

/* A product of weights and values: a sum over the keys. */
static bool derive_weighted(Decode *d, uint32_t id, bool picks, uint32_t row, uint32_t depth)
{
  const Node *n = &d->old[id];
  const Info *x = info_of(d, n->in[0]), *y = info_of(d, n->in[1]);
  int64_t more = d->old[n->in[1].id].dim[depth] - d->length;
  int64_t front = y->kind == NOW ? y->early : more, own = picks ? more : x->front;
  if ((y->kind == NOW && y->now != depth) || front != own) return refuse_op(d, id);
  Value in[3] = {picks ? decode_pick(d, n->in[0].id, row) : d->map[n->in[0].id],
                 decode_whole(d, n->in[1].id)};
  return finish(d, id, in, picks ? n->rank - 2u : x->now, picks ? 1 : x->outer);
}

static bool derive_product(Decode *d, uint32_t id)
{
  static const char later[] = "positions after its own: no mask makes their factors 0";
  const Node *n = &d->old[id];
  Operand a = operand_of(d, n, 0), b = operand_of(d, n, 1);
  const Info *x = info_of(d, n->in[0]), *y = info_of(d, n->in[1]);
  Value in[3] = {d->map[n->in[0].id], d->map[n->in[1].id]};
  if (n->n_in > 2) in[2] = d->map[n->in[2].id];
  if (x->kind == NOW) {
    if (x->now == a.depth) return decode_looks_ahead(d, n, "all positions");
    if (decode_keys(d, n->in[0].id, x->now) == (int)a.depth) {
      if (!x->ahead.known || x->ahead.v != 0) return decode_looks_ahead(d, n, later);
      return derive_weighted(d, id, false, a.row, b.depth);
    }
    if (y->kind == NOW) return derive_scores(d, id, &b);
    if (!is_plain(d, n->in[1])) return derive_places(d, id, &b);
    uint32_t now = x->now == a.row && n->op == OP_gemm ? n->rank - 2u : x->now;
    in[0] = decode_now(d, n->in[0].id);
    return finish(d, id, in, now, x->outer);
  }
  if (y->now == b.row) {
    in[1] = decode_now(d, n->in[1].id);
    return finish(d, id, in, n->rank - 1u, y->outer);
  }
  bool by_row = y->now == b.depth && decode_share(d, n->in[0].id, a.row) == 1;
  if (!by_row)
    return y->now == b.depth ? decode_looks_ahead(d, n, "all positions") : refuse_op(d, id);
  Maybe ahead = ahead_of_const(d, n->in[0].id, a.row, a.depth, y->early);
  if (!ahead.known || ahead.v != 0) return decode_looks_ahead(d, n, later);
  return derive_weighted(d, id, true, a.row, b.depth);
}

/* ---- attention ---- */

enum { QUERY, KEY, VALUE, MASK, POSITION };

static bool excludes(const Node *mask, Maybe ahead)
{
  return ahead.known && (mask->dtype == AMPC_BOOL ? ahead.v == 0 : ahead.v <= FAR_BELOW);
}

/* Returns the mask for the new positions; 0 after a message. */
static Value derive_mask(Decode *d, const Node *n, int64_t front, bool *causal)
{
  Value v = n->in[MASK];
  const Node *mask = &d->old[v.id];
  const Info *x = info_of(d, v);
  bool query = decode_share(d, v.id, 2) == 1, key = decode_share(d, v.id, 3) == 1;
  Maybe ahead = {0};
  if (x->kind == NOW && x->now == 2) ahead = x->ahead;
  if (x->kind == NOW && x->front != front) ahead.known = false;
  if (x->kind == CONST && query && key) ahead = ahead_of_const(d, v.id, 2, 3, front);
  bool empty = mask->dtype != AMPC_BOOL && ahead.v > -INFINITY && x->kind == CONST;
  if (empty && !ahead_leaves_own(d, v.id, 2, 3, front)) ahead.known = false;
  *causal = *causal || excludes(mask, ahead);
  bool fits = x->kind == CONST ? !key || mask->dim[3] - d->length == front
              : x->now == 3    ? x->early == front
                               : true;
  if (!fits) return (Value){refuse_op(d, v.id)};
  if (x->kind == NOW) return x->now == 3 ? decode_whole(d, v.id) : decode_now(d, v.id);
  return query ? decode_pick(d, v.id, 2) : d->map[v.id];
}

/* Returns the rows in front of keys or values. */
static int64_t rows_in_front(const Decode *d, Value v)
{
  bool constant = info_of(d, v)->kind == CONST && !is_plain(d, v);
  return constant ? d->old[v.id].dim[1] - d->length : info_of(d, v)->early;
}

/* Stores the keys and returns all up to now. On a CPU, blocks of keys are kept as [d, keys],
 * because the step reads a feature of many keys at a time. */
static Value whole_keys(Decode *d, uint32_t id)
{
  const Node *old = &d->old[id];
  if (d->info[id].kind == CONST || !is_cpu_target(d->c)) return decode_whole(d, id);
  if (d->keys[id].id) return d->keys[id];
  int64_t block = ATTENTION_BLOCK, blocks = (old->dim[1] + block - 1) / block;
  int64_t dim[] = {old->dim[0], blocks, old->dim[2], old->dim[3], block};
  Value x = decode_now(d, id);
  if (!x.id || d->info[id].early || old->dim[1] != d->length) return decode_whole(d, id);
  d->keys[id] = decode_state(d, id, old->dtype, dim, 5);
  decode_store(d, id, d->keys[id], x, 1, d->position);
  return d->keys[id];
}

static bool derive_attention(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  bool causal = attr_int(n, "causal"), fixed = is_plain(d, n->in[KEY]) && is_plain(d, n->in[VALUE]);
  int64_t front = rows_in_front(d, n->in[KEY]);
  Value in[5] = {decode_now(d, n->in[QUERY].id), {0}, {0}, {0}, d->position};
  if (!causal) in[POSITION] = decode_position(d, id, front);
  if (!is_now(d, n, QUERY) || info_of(d, n->in[QUERY])->now != 1) return refuse_op(d, id);
  for (uint32_t i = QUERY; i <= VALUE; i++) {
    const Info *x = info_of(d, n->in[i]);
    bool pairs = x->kind == NOW && decode_keys(d, n->in[i].id, x->now) != -1;
    if (pairs || (x->kind == NOW && x->now != 1)) return refuse_op(d, id);
    if (i == QUERY) continue;
    if (rows_in_front(d, n->in[i]) != front) return refuse_op(d, id);
    in[i] = i == KEY ? whole_keys(d, n->in[i].id) : decode_whole(d, n->in[i].id);
    if (!in[i].id) return false;
  }
  if (n->in[MASK].id && !(in[MASK] = derive_mask(d, n, front, &causal)).id) return false;
  if (fixed) in[POSITION] = (Value){0}; /* keys that are no positions */
  if (!fixed && !causal) return refuse_keys(d, id);
  Node copy = decode_copy(d, id, in, -1);
  copy.in = arena_array(d->c->arena, Value, 5);
  memcpy(copy.in, in, sizeof in);
  attr_set_int(&copy, "causal", !fixed);
  d->info[id] = (Info){.kind = NOW, .now = 1, .outer = 1};
  d->map[id] = decode_add(d, id, &copy);
  return d->map[id].id != 0;
}

/* ---- ops along an axis ---- */

static bool derive_along(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  if (!is_now(d, n, 0)) return refuse_op(d, id);
  const Info *x = info_of(d, n->in[0]);
  if (attr_int(n, "dim") == x->now) return derive_cumulative(d, id);
  return decode_keys(d, n->in[0].id, x->now) < 0 ? derive_broadcast(d, id) : refuse_op(d, id);
}

/* ---- effects ---- */

/* A check of indices: those of the chunk. */
static bool derive_check(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id], *x = &d->old[n->in[0].id];
  const Info *from = info_of(d, n->in[0]);
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
  const Info *from = info_of(d, n->in[0]);
  if (d->block) return true; /* a prompt has no results */
  bool pairs = from->kind == NOW && decode_keys(d, n->in[0].id, from->now) != -1;
  if (pairs || (from->kind == CONST && !is_plain(d, n->in[0]))) return refuse_op(d, id);
  Value in = from->kind == NOW ? decode_now(d, n->in[0].id) : d->map[n->in[0].id];
  bool good =
      from->kind == NOW ? finish(d, id, &in, from->now, from->outer) : keep(d, id, from->kind);
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
  const Info *from = info_of(d, d->old[id].in[0]);
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
    return is_now(d, n, 0) ? derive_window(d, id) : refuse_op(d, id);
  default:
    if (attr_find(op_of(n), "kernel0", &at) && n->n_in == 1) return derive_window(d, id);
    if (op_has(n, T_along)) return derive_along(d, id);
    return op_has(n, T_tiles) ? derive_attention(d, id) : refuse_op(d, id);
  }
}

/* A value of the last position: all that it is combined with belongs to no position. */
static bool derive_last(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (is_now(d, n, i)) return decode_looks_ahead(d, n, "a value of the last position");
    if (n->in[i].id && info_of(d, n->in[i])->kind == CONST && !is_plain(d, n->in[i]))
      return refuse_op(d, id);
  }
  return keep(d, id, LAST);
}

bool derive_node(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  if (op_draws(n))
    return decode_refuse(d, n, "it draws random numbers", "an infer block of a decoder draws none");
  for (uint32_t i = 0; i < n->rank; i++)
    if (any_of(d, n, NOW) && decode_share(d, id, i) < 0) return refuse_op(d, id);
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
