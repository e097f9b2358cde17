/* Pass layout. Needs the graph with backward. Gives IR_LAID: the order in which the elements of
 * every value lie.
 *
 * In the language and in the passes before this one, images are [n, c, h, w]. Convolutions, pools
 * and statistics of channels are fast if the channels of a pixel are adjacent. So this pass gives
 * them images as [n, h, w, c]. Results that are computed from such images elementwise, along one
 * axis or in slices keep that layout. Weights of convolutions change from [k, c, h, w] to [k, h, w,
 * c], and a parameter that is such a weight is stored so. Ops that need the order of the language
 * (reshapes, products, outputs) read it through a permute, or through a reshape if the bytes are
 * the same. Afterwards axes and shapes of nodes are those of the layout, so later passes need not
 * know of layouts.
 *
 * The same holds for all ranks from 3 on: [n, c, spatial..] becomes [n, spatial.., c]. */
#include "layout.h"
#include "compiler/graph/shares.h"
#include "passes.h"
#include <string.h>

typedef struct Layouts {
  Compile *c;
  Rewrite r;
  /* indexed by new id: the value in the other layout, once a node has needed it */
  VEC(Value) other;
  /* indexed by stream of random numbers: 1 + the layout in which it was first used */
  uint8_t *streams;
} Layouts;

/* ---- axes ---- */

/* Returns the position of axis `axis` of [n, c, ..] in [n, .., c]. */
static uint32_t laid_axis(uint32_t rank, int64_t axis)
{
  return axis == 0 ? 0 : axis == 1 ? rank - 1 : (uint32_t)axis - 1;
}

/* Returns the axis of [n, c, ..] that is axis `axis` of [n, .., c]. */
static uint32_t named_axis(uint32_t rank, uint32_t axis)
{
  return axis == 0 ? 0 : axis == rank - 1 ? 1 : axis + 1;
}

/* Writes the dims of [n, c, ..] in the order [n, .., c]: [2, 3, 8, 9] becomes [2, 8, 9, 3]. */
static void lay_dims(const int64_t *dim, uint32_t rank, int64_t *out)
{
  for (uint32_t i = 0; i < rank; i++) out[laid_axis(rank, i)] = dim[i];
}

/* Returns a mask of axes of [n, c, ..] as a mask of axes of [n, .., c]. */
static uint64_t lay_mask(uint64_t mask, uint32_t rank)
{
  uint64_t out = 0;
  for (uint32_t i = 0; i < rank; i++)
    if (mask >> i & 1) out |= 1ull << laid_axis(rank, i);
  return out;
}

/* A reduction keeps the axes of x that are not in `gone`. Returns true if the kept axes are in the
 * order of the language, so that the result is row-major without a move. [n, h, w, c] without h and
 * w is [n, c]. Without w it is [n, h, c], but the language means [n, c, h]. Axes of size 1 may be
 * anywhere: the bytes are the same, and a reshape sets the dims. */
static bool keeps_order(const Node *x, uint64_t gone)
{
  uint32_t last = 0;
  for (uint32_t i = 0; i < x->rank; i++) {
    if ((gone >> i & 1) || x->dim[i] == 1) continue;
    uint32_t axis = named_axis(x->rank, i);
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

/* ---- from one layout to the other ---- */

static Cursor cursor_at(const Graph *g, Value v)
{
  Cursor at = ir_cursor_of(g, v);
  at.why = WHY_follow;
  at.loop = ir_loop_of(g, v);
  return at;
}

/* Appends a reshape, expand or full of v, with the position of v in the job. */
static Value as_shape(Layouts *l, Value v, OpKind op, const int64_t *dim, uint32_t rank)
{
  Cursor at = cursor_at(l->c->graph, v);
  return ir_append(l->c, &at, op, &v, 1, ir_shape_attrs(l->c, dim, rank));
}

/* Returns v with other axes: axis i is axes[i] of v. If only axes of size 1 are swapped, as from
 * [n, 1, h, w] to [n, h, w, 1], a reshape is enough. */
static Value permuted(Layouts *l, Value v, const uint32_t *axes)
{
  const Node *n = ir_node(l->c->graph, v);
  int64_t dim[MAX_RANK];
  uint32_t last = 0, rank = n->rank;
  bool moves = false;
  for (uint32_t i = 0; i < rank; i++) {
    dim[i] = n->dim[axes[i]];
    if (dim[i] == 1) continue;
    moves = moves || axes[i] < last;
    last = axes[i];
  }
  if (!moves) return as_shape(l, n->op == OP_reshape ? n->in[0] : v, OP_reshape, dim, rank);
  Cursor at = cursor_at(l->c->graph, v);
  return ir_permute(l->c, &at, v, axes);
}

/* True if n is a reshape of x that keeps n and c and only rearranges the pixels, such as from [n,
 * c, h, w] to [n, c, h w]. In channels last it is also a reshape. */
static bool regroups_pixels(const Node *x, const Node *n)
{
  return x->rank > 2 && n->rank > 2 && x->dim[0] == n->dim[0] && x->dim[1] == n->dim[1];
}

static Value relaid(Layouts *l, Value v, Layout want);

/* Returns v with axes of size 1 in front, so that it has `rank` axes. Axes are aligned as in the
 * language, so v is first brought into the order of the language. */
static Value with_rank(Layouts *l, Value v, uint32_t rank)
{
  int64_t dim[MAX_RANK];
  uint32_t missing = rank - ir_node(l->c->graph, v)->rank;
  if (!missing) return v;
  v = relaid(l, v, LAYOUT_row_major);
  Node n = *ir_node(l->c->graph, v);
  for (uint32_t i = 0; i < rank; i++) dim[i] = i < missing ? 1 : n.dim[i - missing];
  return as_shape(l, v, OP_reshape, dim, rank);
}

/* Returns n, which repeats a smaller value (expand, full), in the other layout. Repeating the small
 * input along the new axes costs nothing; moving the large result would. */
static Value repeated(Layouts *l, const Node *n)
{
  int64_t dim[MAX_RANK];
  lay_dims(n->dim, n->rank, dim);
  Value from = n->in[0];
  if (n->op == OP_expand) from = relaid(l, with_rank(l, from, n->rank), LAYOUT_channels_last);
  return as_shape(l, from, n->op, dim, n->rank);
}

/* Returns v in layout `want`. Tries the cheapest way first: repeat again; merge two permutes;
 * reshape the other layout of the input; and only then move the bytes. */
static Value make_relaid(Layouts *l, Value v, Layout want)
{
  Node n = *ir_node(l->c->graph, v);
  bool last = want == LAYOUT_channels_last;
  if (last && op_has(&n, T_repeats)) return repeated(l, &n);
  uint32_t axes[MAX_RANK];
  for (uint32_t i = 0; i < n.rank; i++)
    axes[i] = last ? named_axis(n.rank, i) : laid_axis(n.rank, i);
  if (n.layout == LAYOUT_row_major && op_has(&n, T_permutes)) {
    for (uint32_t i = 0; i < n.rank; i++) axes[i] = ir_permuted_axis(&n, axes[i]);
    return permuted(l, n.in[0], axes);
  }
  const Node *from = n.n_in ? ir_in(l->c, &n, 0) : NULL;
  bool same_order = from && from->layout == LAYOUT_row_major; /* else the reshape moves no bytes */
  if (last && n.op == OP_reshape && same_order && regroups_pixels(from, &n)) {
    int64_t dim[MAX_RANK];
    lay_dims(n.dim, n.rank, dim);
    return as_shape(l, relaid(l, n.in[0], want), OP_reshape, dim, n.rank);
  }
  return permuted(l, v, axes);
}

/* Records v and `other` as one value in two layouts: moving back returns the original value. */
static void remember(Layouts *l, Value v, Value other)
{
  while (l->other.n <= v.id) vec_push(l->c->arena, &l->other, (Value){0});
  l->other.at[v.id] = other;
}

/* Returns v in layout `want`, moved once for all readers. Ranks below 3 have only one layout. */
static Value relaid(Layouts *l, Value v, Layout want)
{
  const Graph *g = l->c->graph;
  if (!v.id || ir_node(g, v)->rank < 3 || ir_node(g, v)->layout == want) return v;
  if (v.id < l->other.n && l->other.at[v.id].id) return l->other.at[v.id];
  Value other = make_relaid(l, v, want);
  ir_node(g, other)->layout = (uint8_t)want;
  remember(l, v, other);
  remember(l, other, v);
  return other;
}

/* ---- one node ---- */

static bool is_last(const Layouts *l, Value v)
{
  return v.id && ir_node(l->c->graph, v)->layout == LAYOUT_channels_last;
}

static bool any_last(const Layouts *l, const Node *n)
{
  for (uint32_t i = 0; i < n->n_in; i++)
    if (is_last(l, n->in[i])) return true;
  return false;
}

/* Appends n with the shape and attributes that follow from its new inputs; its type stays. */
static void add(Layouts *l, uint32_t id, Node *n, Layout layout)
{
  DType type = n->dtype;
  bool images = op_image_inputs(op_of(n)) != 0;
  ir_infer(l->c, n);
  n->dtype = type;
  if (!images) n->layout = (uint8_t)layout;
  ir_rewrite_add(&l->r, id, n);
}

/* Appends n in the order of the language; moves its inputs into that order first. */
static void lay_as_written(Layouts *l, uint32_t id, Node *n)
{
  for (uint32_t i = 0; i < n->n_in; i++) n->in[i] = relaid(l, n->in[i], LAYOUT_row_major);
  ir_rewrite_add(&l->r, id, n);
}

/* Appends a convolution, pool or batch norm with images that are channels last. The result is
 * channels last too, since the shape rule passes the layout on. The weight of a convolution has the
 * layout of an image. Vectors have one layout only. */
static void lay_images(Layouts *l, uint32_t id, Node *n)
{
  uint32_t images = op_of(n)->tmpl == TMPL_conv ? ~0u : op_image_inputs(op_of(n));
  for (uint32_t i = 0; i < n->n_in; i++)
    if (images >> i & 1) n->in[i] = relaid(l, n->in[i], LAYOUT_channels_last);
  uint32_t channel;
  if (attr_find(op_of(n), "channel", &channel))
    n->attr[channel].i = laid_axis(ir_in(l->c, n, 0)->rank, n->attr[channel].i);
  add(l, id, n, LAYOUT_row_major);
}

/* Returns the layout of an elementwise node. It is channels last if an input of the full size is;
 * smaller inputs are cheaper to move. Random numbers depend on the index of the element: dropout
 * must have the same layout in backward as in forward, or it would drop other elements. */
static Layout map_layout(const Layouts *l, const Node *n)
{
  if (op_of(n)->code.random && l->streams[n->stream]) return l->streams[n->stream] - 1;
  bool whole = false, whole_last = false, last = false;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!n->in[i].id) continue;
    bool same = ir_elements(ir_in(l->c, n, i)) == ir_elements(n);
    whole = whole || same;
    whole_last = whole_last || (same && is_last(l, n->in[i]));
    last = last || is_last(l, n->in[i]);
  }
  return (whole ? whole_last : last) ? LAYOUT_channels_last : LAYOUT_row_major;
}

/* Appends an elementwise node. Inputs with fewer axes get axes of size 1 in front: [h, w]
 * broadcasts over the last axes of [n, c, h, w], which are not the last axes of [n, h, w, c]. */
static void lay_map(Layouts *l, uint32_t id, Node *n)
{
  Layout layout = map_layout(l, n);
  if (op_of(n)->code.random) l->streams[n->stream] = (uint8_t)(1 + layout);
  if (layout == LAYOUT_row_major) {
    lay_as_written(l, id, n);
    return;
  }
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!n->in[i].id || ir_in(l->c, n, i)->rank == 0) continue;
    n->in[i] = relaid(l, with_rank(l, n->in[i], n->rank), layout);
  }
  add(l, id, n, layout);
}

/* True if the inputs of row op n allow x in channels last. Inputs with the rank of x are read
 * element by element, inputs with one axis less are read row by row. Row inputs are not moved, so
 * the axes that the reduction keeps must be in the order of the language. */
static bool inputs_follow(const Layouts *l, const Node *n, uint32_t rank, bool ordered)
{
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!n->in[i].id) continue;
    uint32_t have = ir_in(l->c, n, i)->rank;
    if (have != rank && have != 0 && !(have == rank - 1 && ordered)) return false;
  }
  return true;
}

/* Returns v, a row value for a row op on x, with the axes of x that are not in `gone`, in the order
 * of the language. In the layout of x, axes of size 1 may be elsewhere, so v is reshaped. */
static Value as_row_values(Layouts *l, Value v, const Node *x, uint64_t gone)
{
  int64_t dim[MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < x->rank; i++)
    if (!(gone >> i & 1)) dim[rank++] = x->dim[i];
  Cursor at = cursor_at(l->c->graph, v);
  return ir_reshape(l->c, &at, v, dim, rank);
}

/* Lays out the inputs of a row op on x, which is channels last. */
static void lay_row_inputs(Layouts *l, Node *n, const Node *x, uint64_t gone)
{
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!n->in[i].id) continue;
    uint32_t have = ir_in(l->c, n, i)->rank;
    bool element = have == x->rank;
    n->in[i] = relaid(l, n->in[i], element ? LAYOUT_channels_last : LAYOUT_row_major);
    if (!element && have != 0) n->in[i] = as_row_values(l, n->in[i], x, gone);
  }
}

/* Appends a reduction or row op. It stays channels last if its axes are still adjacent: softmax
 * over c of [n, h, w, c], a sum over h and w. A sum over c and h does not: its mask is 1010. */
static void lay_row(Layouts *l, uint32_t id, Node *n)
{
  uint32_t keep;
  uint64_t named;
  bool is_axis = !op_axes(n, &named);
  Node x = *ir_node(l->c->graph, relaid(l, n->in[0], LAYOUT_channels_last)), written = *n;
  if (is_axis) named = 1ull << attr_int(n, "dim");
  uint64_t gone = lay_mask(named, x.rank);
  bool keeps = attr_find(op_of(n), "keepdim", &keep) && n->attr[keep].i;
  bool same_rank = n->rank == x.rank || keeps;
  bool ordered = keeps_order(&x, gone);
  if (!ir_axes_touch(gone) || !(same_rank || ordered) || !inputs_follow(l, n, x.rank, ordered)) {
    lay_as_written(l, id, n);
    return;
  }
  lay_row_inputs(l, n, &x, gone);
  attr_set_int(n, "dim", is_axis ? laid_axis(x.rank, attr_int(n, "dim")) : (int64_t)gone);
  add(l, id, n, same_rank ? LAYOUT_channels_last : LAYOUT_row_major);
  Cursor at = cursor_at(l->c->graph, l->r.map[id]);
  if (!same_rank) l->r.map[id] = ir_reshape(l->c, &at, l->r.map[id], written.dim, written.rank);
}

/* Appends slice, pad, cat or flip_axis: these name one axis and keep the others. */
static void lay_along_axis(Layouts *l, uint32_t id, Node *n)
{
  for (uint32_t i = 0; i < n->n_in; i++) n->in[i] = relaid(l, n->in[i], LAYOUT_channels_last);
  attr_set_int(n, "dim", laid_axis(n->rank, attr_int(n, "dim")));
  add(l, id, n, LAYOUT_channels_last);
}

/* Appends a transpose or permute of images that are channels last. Its axes are in the order of the
 * language. It becomes one permute of the actual axes, which often moves no bytes. */
static void lay_moved(Layouts *l, uint32_t id, const Node *n)
{
  uint32_t axes[MAX_RANK];
  for (uint32_t i = 0; i < n->rank; i++) axes[i] = laid_axis(n->rank, ir_permuted_axis(n, i));
  Value v = permuted(l, n->in[0], axes);
  Node *at = ir_node(l->c->graph, v);
  at->name = n->name;
  at->span = n->span;
  at->layer = n->layer;
  at->origin = n->origin;
  l->r.map[id] = v;
}

static void lay_regrouped(Layouts *l, uint32_t id, Node *n)
{
  int64_t dim[MAX_RANK];
  lay_dims(n->dim, n->rank, dim);
  ir_set_shape(n, dim);
  add(l, id, n, LAYOUT_channels_last);
}

/* Appends an expand. If it adds axes, the aligned axes are not the axes of channels last. */
static void lay_expand(Layouts *l, uint32_t id, Node *n)
{
  if (ir_in(l->c, n, 0)->rank != n->rank) {
    lay_as_written(l, id, n);
  } else {
    lay_regrouped(l, id, n);
  }
}

static void lay_param(Layouts *l, uint32_t id, Node *n)
{
  bool last = l->c->graph->params.at[attr_int(n, "index")].channels_last;
  add(l, id, n, last ? LAYOUT_channels_last : LAYOUT_row_major);
}

/* Appends a node of a gradient, which has the layout of its parameter. */
static void lay_gradient(Layouts *l, uint32_t id, Node *n)
{
  bool last = l->c->graph->params.at[attr_int(n, "param")].channels_last;
  n->in[0] = relaid(l, n->in[0], last ? LAYOUT_channels_last : LAYOUT_row_major);
  ir_rewrite_add(&l->r, id, n);
}

/* Appends a node that reads a channels-last value or draws random numbers. l->r.old has the shapes
 * of the language. */
static void lay_reached(Layouts *l, uint32_t id, Node *n)
{
  OpTemplate tmpl = op_of(n)->tmpl;
  uint32_t axis;
  if (tmpl == TMPL_map && !op_has(n, T_effect))
    lay_map(l, id, n);
  else if (tmpl == TMPL_row)
    lay_row(l, id, n);
  else if (tmpl == TMPL_move && attr_find(op_of(n), "dim", &axis))
    lay_along_axis(l, id, n);
  else if (op_has(n, T_permutes))
    lay_moved(l, id, n);
  else if (n->op == OP_reshape && regroups_pixels(&l->r.old[l->r.old[id].in[0].id], n))
    lay_regrouped(l, id, n);
  else if (n->op == OP_expand)
    lay_expand(l, id, n);
  else
    lay_as_written(l, id, n);
}

/* Copies node `id`, unless it reads channels-last values or draws random numbers. */
static void lay_node(Layouts *l, uint32_t id)
{
  Node n = ir_rewrite_mapped(&l->r, id);
  if (op_image_inputs(op_of(&n)))
    lay_images(l, id, &n);
  else if (ir_parameter(l->c->graph, &n))
    lay_param(l, id, &n);
  else if (ir_adds_to(&n) >= 0)
    lay_gradient(l, id, &n);
  else if (op_has(&n, T_crosses)) /* it crosses the border of a loop */
    lay_as_written(l, id, &n);
  else if (!any_last(l, &n) && !op_of(&n)->code.random)
    ir_rewrite_add(&l->r, id, &n);
  else
    lay_reached(l, id, &n);
}

/* Marks parameters that a convolution reads, directly or through casts, and the shares of such
 * parameters. Buffers stay in the order of the language. */
static void mark_weights(Graph *g)
{
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (op_of(n)->tmpl != TMPL_conv || op_has(n, T_gives_weight)) continue;
    const Node *w = ir_node(g, n->in[1]);
    while (op_has(w, T_casts)) w = ir_node(g, w->in[0]);
    Parameter *p = ir_parameter(g, w);
    if (p) p->channels_last = !param_is_state(p);
  }
  for (uint32_t i = 0; i < g->params.n; i++)
    g->params.at[i].channels_last = share_weight(g, &g->params.at[i])->channels_last;
}

bool pass_layout(Compile *c)
{
  Layouts l = {.c = c};
  mark_weights(c->graph);
  l.streams = arena_array(c->arena, uint8_t, c->graph->n_streams + 1);
  ir_rewrite_begin(&l.r, c);
  for (uint32_t id = 1; id < l.r.n_old; id++) lay_node(&l, id);
  pad_channels(c);
  ir_drop_dead(c);
  c->graph->facts |= IR_LAID;
  return true;
}
