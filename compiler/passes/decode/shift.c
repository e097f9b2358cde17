/* Part of pass decode: values that are moved along the positions.
 *
 * Note [early]
 * Padding with `early` rows in front moves a value: its row u then depends on the tokens up to
 * position u - early, and the chunk at position p computes the rows from p + early on. The
 * first `early` rows depend on no token. If all of them are one number, it is `first`. Slices move
 * rows back, and windows of convolutions, which end at the newest row, too. Rows that are before
 * those of the chunk are state: the last rows of the call before, at position 0 the number. No
 * value moves to the other side, where rows would depend on later tokens. */
#include "decode.h"
#include "compiler/rules/rules.h"
#include <math.h>
#include <string.h>

/* Positions that share their axis with something else cannot be moved by rows. */
static bool refuse_shared(Decode *d, uint32_t id)
{
  return decode_refuse(d, &d->old[id], "its positions share an axis with something else",
                       "keep positions in an axis of their own");
}

static bool shares_axis(const Decode *d, uint32_t id)
{
  return decode_share(d, id, d->info[id].now) != 1;
}

static Value slice(Decode *d, const Cursor *at, Value v, uint32_t axis, int64_t start, int64_t n)
{
  return ir_append(
      d->c, at, OP_slice, &v, 1,
      ATTRS({"dim", {.i = axis}}, {"start", {.i = start}}, {"stop", {.i = start + n}}));
}

/* Returns x with `rows` earlier rows in front along `axis`, and keeps the last ones. `id`: the old
 * node to which the state belongs; front: the rows before position 0, or 0: they are `first`. */
static Value with_earlier(Decode *d, uint32_t id, Value x, uint32_t axis, int64_t rows,
                          double first, Value front)
{
  Node n = *ir_node(d->g, x);
  Cursor at = decode_cursor(d, &d->old[id]);
  int64_t dim[MAX_RANK];
  memcpy(dim, n.dim, sizeof dim);
  dim[axis] = rows;
  at.why = WHY_fixed;
  Value state = decode_state(d, id, n.dtype, dim, n.rank);
  if (!front.id) front = ir_cast(d->c, &at, ir_number(d->c, &at, first), n.dtype);
  at.why = WHY_follow;
  Value in[] = {decode_begins(d, &d->old[id], front, state), x};
  Value all = ir_append(d->c, &at, OP_cat, in, 2, ATTRS({"dim", {.i = axis}}));
  decode_store(d, id, state, slice(d, &at, all, axis, d->chunk, rows), -1, (Value){0});
  return all;
}

Value decode_now(Decode *d, uint32_t id)
{
  const Info *x = &d->info[id];
  if (x->kind != NOW || !x->early) return d->map[id];
  if (d->settled[id].id) return d->settled[id];
  if (!x->is_first && !x->rows.id) {
    decode_refuse(d, &d->old[id], "its first rows are computed, and later ones are moved",
                  "pad with a number right before the rows are read");
    return (Value){0};
  }
  Cursor at = decode_cursor(d, &d->old[id]);
  Value front = x->is_first ? (Value){0} : x->rows;
  Value all = with_earlier(d, id, d->map[id], x->now, x->early, x->first, front);
  return d->settled[id] = slice(d, &at, all, x->now, 0, d->chunk);
}

/* ---- ops ---- */

/* Rows of earlier calls lack later keys. */
static bool lacks_keys(const Decode *d, uint32_t id)
{
  const Info *x = &d->info[id];
  return decode_keys(d, id, x->now) != -1 && !x->ahead.known;
}

static bool move_to(Decode *d, uint32_t id, uint32_t from, int64_t early, bool is_first,
                    double first)
{
  if (early < 0) return decode_looks_ahead(d, &d->old[id], "rows after its position");
  if (early && lacks_keys(d, from))
    return decode_looks_ahead(d, &d->old[id], "all pairs of positions");
  if (shares_axis(d, from)) return refuse_shared(d, id);
  d->info[id] = d->info[from];
  d->info[id].early = early;
  d->info[id].is_first = is_first;
  d->info[id].first = first;
  if (early != d->info[from].early) d->info[id].rows = (Value){0};
  if (early && !(is_first && d->info[from].ahead.known && first == d->info[from].ahead.v))
    d->info[id].ahead = (Maybe){0}; /* the rows in front are something else */
  d->map[id] = d->map[from];
  return true;
}

bool derive_pad(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  const Info *x = &d->info[n->in[0].id];
  double value = attr_float(n, "value");
  int64_t before = attr_int(n, "before");
  bool same = !x->early || (x->is_first && x->first == value);
  return move_to(d, id, n->in[0].id, x->early + before, before ? same : x->is_first,
                 before ? value : x->first);
}

bool derive_shift(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  const Info *x = &d->info[n->in[0].id];
  return move_to(d, id, n->in[0].id, x->early - attr_int(n, "start"), x->is_first, x->first);
}

/* Numbers in front of a NOW value. */
bool derive_prefix(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  uint32_t last = n->in[n->n_in - 1].id;
  const Info *x = &d->info[last];
  int64_t early = x->early, axis = attr_int(n, "dim");
  double first = x->first, one = 0;
  bool same = x->early == 0 || x->is_first, any = x->early > 0;
  for (uint32_t i = 0; i + 1u < n->n_in; i++) {
    if (d->info[n->in[i].id].kind != CONST || decode_share(d, n->in[i].id, (uint32_t)axis))
      return decode_refuse(d, n, "it joins positions",
                           "only numbers in front of all positions are possible");
    same = same && decode_is_uniform(d, n->in[i].id, &one) && (!any || one == first);
    first = one;
    any = true;
    early += d->old[n->in[i].id].dim[axis];
  }
  if (!move_to(d, id, last, early, same, first)) return false;
  bool one_part = n->n_in == 2 && early == d->old[n->in[0].id].dim[axis];
  d->info[id].rows = one_part ? d->map[n->in[0].id] : (Value){0};
  return true;
}

/* A convolution or a pool along the positions: the rows before the chunk are its padding at first.
 */
bool derive_window(Decode *d, uint32_t id)
{
  static const char *const pads[] = {"pad0", "pad1", "pad2"};
  static const char *const kernels[] = {"kernel0", "kernel1", "kernel2"};
  const Node *n = &d->old[id];
  const Info *x = &d->info[n->in[0].id];
  if (decode_keys(d, n->in[0].id, x->now) != -1)
    return decode_looks_ahead(d, n, "keys after its position, which no mask excludes");
  if (shares_axis(d, n->in[0].id)) return refuse_shared(d, id);
  if (x->now < 2 || op_has(n, T_gives_image | T_gives_weight))
    return decode_refuse(d, n, "it mixes positions", "convolve along the positions, with stride 1");
  bool pools = op_of(n)->tmpl != TMPL_conv;
  double padding = !pools || op_has(n, T_linear) ? 0 : -INFINITY; /* of a maximum */
  Window w = rule_window(
      n, x->now - 2, pools ? attr_int(n, kernels[x->now - 2]) : d->old[n->in[1].id].dim[x->now]);
  int64_t rows = (w.kernel - 1) * w.dilation, early = x->early + w.pad - rows;
  bool known = rows <= x->early ? x->is_first : !x->early || (x->is_first && x->first == padding);
  uint32_t counts; /* the divisor of a mean does not depend on the padding */
  if (attr_find(op_of(n), "count_include_pad", &counts) && !n->attr[counts].i && w.pad)
    return decode_refuse(d, n, "it divides by the number of rows", "`pad` before the pool");
  if (attr_find(op_of(n), "argmax", &counts) && n->attr[counts].i)
    return decode_refuse(d, n, "it returns places among all positions", "return the maximum alone");
  if (w.stride != 1)
    return decode_refuse(d, n, "its stride is not 1", "convolve along the positions with stride 1");
  if (early < 0) return decode_looks_ahead(d, n, "rows after its position");
  if (rows && !known)
    return decode_refuse(d, n, "the rows in front are computed", "pad with zeros right before it");
  Value in[n->n_in];
  for (uint32_t i = 0; i < n->n_in; i++) in[i] = d->map[n->in[i].id];
  double first = x->early ? x->first : padding;
  if (rows) in[0] = with_earlier(d, id, in[0], x->now, rows, first, (Value){0});
  Node copy = decode_copy(d, id, in, -1);
  attr_set_int(&copy, pads[x->now - 2], 0);
  d->info[id] = (Info){.kind = NOW, .now = x->now, .outer = 1, .early = early};
  d->map[id] = decode_add(d, id, &copy);
  return d->map[id].id != 0;
}

/* Sums and products of all rows so far: they continue from the last one. */
bool derive_cumulative(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  const Info *x = &d->info[n->in[0].id];
  Cursor at = decode_cursor(d, n);
  uint32_t axis = x->now, reverse, exclusive;
  bool sums = op_has(n, T_linear), plain = attr_find(op_of(n), "reverse", &reverse);
  if (plain && n->attr[reverse].i) return decode_looks_ahead(d, n, "positions after its own");
  bool leaves_out = attr_find(op_of(n), "exclusive", &exclusive) && n->attr[exclusive].i;
  if (lacks_keys(d, n->in[0].id)) return decode_looks_ahead(d, n, "all pairs of positions");
  if (shares_axis(d, n->in[0].id)) return refuse_shared(d, id);
  bool fits = plain && !leaves_out && d->old[n->in[0].id].dtype == n->dtype;
  if (!fits)
    return decode_refuse(d, n, "it is not known what it reads of earlier positions",
                         "of the ops along positions, cumsum and cumprod are possible");
  int64_t dim[MAX_RANK];
  memcpy(dim, n->dim, sizeof dim);
  dim[axis] = 1;
  at.why = WHY_fixed;
  Value state = decode_state(d, id, n->dtype, dim, n->rank);
  Value number = ir_cast(d->c, &at, ir_number(d->c, &at, sums ? 0 : 1), n->dtype);
  at.why = WHY_follow;
  Value in[] = {decode_begins(d, n, number, state), decode_now(d, n->in[0].id)};
  if (!in[1].id) return false;
  Value all = ir_append(d->c, &at, OP_cat, in, 2, ATTRS({"dim", {.i = axis}}));
  Node copy = decode_copy(d, id, &all, -1);
  all = decode_add(d, id, &copy);
  decode_store(d, id, state, slice(d, &at, all, axis, d->chunk, 1), -1, (Value){0});
  d->info[id] = (Info){.kind = NOW, .now = axis, .outer = 1};
  d->map[id] = slice(d, &at, all, axis, 1, d->chunk);
  return true;
}
