/* How kernels walk shapes: see walk.h. */
#include "walk.h"
#include <assert.h>
#include <string.h>

LoopShape loop_shape_of(const Node *n)
{
  LoopShape s = {.rank = n->rank};
  memcpy(s.dim, n->dim, sizeof s.dim);
  return s;
}

int64_t loop_elements(const LoopShape *s)
{
  return dims_product(s->dim, s->rank);
}

static Access access_rows(const LoopShape *s, int64_t row)
{
  Access a = {.offset = 0};
  int64_t step = 1;
  for (uint32_t i = s->rank; i > 0; i--) {
    a.stride[i - 1] = step;
    step *= i == s->rank ? row : s->dim[i - 1];
  }
  return a;
}

Access access_whole(const LoopShape *s)
{
  return access_rows(s, s->rank ? s->dim[s->rank - 1] : 1);
}

Access access_all(const LoopShape *s, const Node *n)
{
  return n->pitch ? access_rows(s, n->pitch) : access_whole(s);
}

/* Axes are aligned at the right. Axes of size 1, and axes that n lacks, have stride 0. */
Access access_broadcast(const LoopShape *s, const Node *n)
{
  Access a = {.offset = 0};
  int64_t step = 1;
  for (uint32_t i = 1; i <= n->rank && i <= s->rank; i++) {
    int64_t dim = n->dim[n->rank - i];
    a.stride[s->rank - i] = dim == 1 ? 0 : step;
    step *= i == 1 ? ir_row(n) : dim;
  }
  return a;
}

static Access access_own(const Node *n)
{
  LoopShape s = loop_shape_of(n);
  return access_all(&s, n);
}

/* Returns the access to move n, from the access `a` to its input x. A transpose swaps two strides;
 * a slice starts at an offset and has larger strides. No bytes move, so the reader of such a node
 * can load through these strides. */
static Access access_moved(const Node *n, const Node *x, Access a)
{
  Access out = a;
  uint32_t start, more = (uint32_t)n->rank - x->rank;
  if (op_has(n, T_permutes)) {
    for (uint32_t i = 0; i < n->rank; i++) out.stride[i] = a.stride[ir_permuted_axis(n, i)];
  } else if (attr_find(op_of(n), "start", &start)) {
    int64_t axis = attr_int(n, "dim");
    out.offset += n->attr[start].i * a.stride[axis];
    out.stride[axis] *= attr_int(n, "step");
  } else if (op_has(n, T_repeats)) {
    for (uint32_t i = 0; i < n->rank; i++)
      out.stride[i] = i < more || x->dim[i - more] == 1 ? 0 : a.stride[i - more];
  }
  return out; /* a cast has the access of x */
}

/* Finds the access to `to`, a view of `from` with other dims; false if strides cannot express it.
 * From the last axis to the first, adjacent axes of the old shape whose strides form one run are
 * merged. The axes of the new shape must divide each run exactly. */
static bool access_viewed(const Node *from, const Access *a, const Node *to, Access *out)
{
  int k = (int)to->rank - 1;
  int64_t run = 1, base = 0, left = 1;
  out->offset = a->offset;
  for (int i = (int)from->rank - 1; i >= 0; i--) {
    if (run == 1) base = a->stride[i];
    run *= from->dim[i];
    bool goes_on = i > 0 && (run == 1 || from->dim[i - 1] == 1 || a->stride[i - 1] == base * run);
    if (goes_on) continue;
    for (left = 1; k >= 0 && (left < run || to->dim[k] == 1); k--) {
      out->stride[k] = base * left;
      left *= to->dim[k];
    }
    if (left != run) return false;
    run = 1;
  }
  for (; k >= 0; k--) out->stride[k] = 0;
  return true;
}

bool access_through(const Graph *g, Value v, Access *out)
{
  const Node *n = ir_node(g, v);
  Access a;
  if (op_of(n)->tmpl != TMPL_alias && !n->folded) {
    *out = access_own(n);
    return true;
  }
  const Node *x = ir_node(g, n->in[0]);
  if (!access_through(g, n->in[0], &a)) return false;
  if (!n->folded) return access_viewed(x, &a, n, out);
  *out = access_moved(n, x, a);
  return true;
}

/* An operand with as many elements as the loop is read in order, even if its shape differs: a
 * gradient's slot, a view. */
Access access_operand(Compile *c, const LoopShape *s, const Node *n, uint32_t input)
{
  bool moves = op_of(n)->tmpl == TMPL_move;
  const Node *x = moves ? ir_in(c, n, 0) : value_shape(c->graph, n->in[input]);
  if (moves) return access_moved(n, x, access_own(x));
  if (op_has(n, T_blocks)) return access_whole(s); /* map_access makes the index */
  bool all = ir_elements(x) == loop_elements(s) || ir_same_dims(x, n);
  return all ? access_all(s, x) : access_broadcast(s, x);
}

/* ---- collapsing ---- */

static void drop_axis(LoopShape *s, Access *a, uint32_t n, uint32_t axis)
{
  for (uint32_t i = axis; i + 1 < s->rank; i++) {
    s->dim[i] = s->dim[i + 1];
    for (uint32_t k = 0; k < n; k++) a[k].stride[i] = a[k].stride[i + 1];
  }
  s->rank--;
}

/* True if every operand can walk axes `axis` and `axis` + 1 as one: [4, 8] with strides 8, 1 as
 * [32]. */
static bool walks_on(const LoopShape *s, const Access *a, uint32_t n, uint32_t axis)
{
  for (uint32_t k = 0; k < n; k++)
    if (a[k].stride[axis] != a[k].stride[axis + 1] * s->dim[axis + 1]) return false;
  return true;
}

/* Drops axes of size 1 first, because they would prevent merging their neighbours. */
void loop_collapse(LoopShape *s, Access *a, uint32_t n)
{
  for (uint32_t i = s->rank; i > 0; i--)
    if (s->dim[i - 1] == 1) drop_axis(s, a, n, i - 1);
  for (uint32_t i = s->rank; i > 1; i--) {
    if (!walks_on(s, a, n, i - 2)) continue;
    s->dim[i - 1] *= s->dim[i - 2];
    drop_axis(s, a, n, i - 2);
  }
}

/* ---- elementwise groups ---- */

/* True if n is elementwise, or a move that is only a load with other strides. */
static bool is_walk(const Node *n)
{
  return op_of(n)->tmpl == TMPL_map || op_has(n, T_strided) || op_has(n, T_permutes);
}

/* A move that is a kernel by itself is the anchor of its group. */
bool group_is_map(const Graph *g, const Group *p)
{
  if (p->n_parts || (p->anchor.id && !is_walk(ir_node(g, p->anchor)))) return false;
  for (uint32_t i = 0; i < p->n; i++)
    if (!is_walk(ir_node(g, p->nodes[i]))) return false;
  return true;
}

/* Note [vectors]
 * A thread of an elementwise kernel computes a vector: 8 adjacent numbers if some have 16 bits (128
 * bits of these), or 4 if all have 32 bits or more. So adjacent threads read adjacent bytes. The
 * elements of a vector are along the last axis of the merged shape, whose size they must divide. If
 * a node calls a slow function, vectors are made smaller until every multiprocessor has work.
 * Kernels with fewer elements than a block has threads use no vectors: the longer text is not worth
 * it. */
static uint32_t widest_vector(const Compile *c, const KernelArgs *args)
{
  for (uint32_t i = 0; i < args->n; i++)
    if (args->at[i].value.id && ir_dtype_size(c, args->at[i].type) <= 2) return 8;
  return 4;
}

uint32_t pad_vector(const Compile *c, Value v)
{
  const Node *n = ir_node(c->graph, v);
  if (n->op != OP_pad || n->rank == 0 || attr_int(n, "dim") != n->rank - 1) return 0;
  uint32_t vector = (uint32_t)(TENSOR_ALIGNMENT / ir_dtype_size(c, n->dtype));
  return attr_int(n, "before") == 0 && n->dim[n->rank - 1] % vector == 0 ? vector : 0;
}

/* ---- rows ---- */

/* Finds the row axes of part_sums: those before the columns; all, if the columns are not axes. */
static void row_axes_of_columns(const Node *n, const Node *x, RowShape *r)
{
  int64_t behind = 1, columns = n->dim[1];
  r->parts = n->dim[0];
  r->to = x->rank;
  while (r->to > 0 && behind < columns) behind *= x->dim[--r->to];
  r->loose = behind != columns;
  if (r->loose) r->to = x->rank;
}

/* Finds the axes [from, to) that form a row: one axis, or a run of adjacent axes in a mask (an
 * empty mask means all). For channel statistics, all axes but the last are reduced, in parts. */
static void row_axes(const Node *n, const Node *x, RowShape *r)
{
  uint32_t attr;
  uint64_t mask;
  if (attr_find(op_of(n), "channel", &attr)) { /* the last axis since pass layout */
    assert(n->attr[attr].i == x->rank - 1);
    r->to = x->rank - 1u;
    r->parts = n->dim[0];
    return;
  }
  if (attr_find(op_of(n), "columns", &attr)) {
    row_axes_of_columns(n, x, r);
    return;
  }
  if (!op_axes(n, &mask)) {
    r->from = (uint32_t)attr_int(n, "dim");
    r->to = r->from + 1;
    return;
  }
  if (!mask) mask = (1ull << x->rank) - 1;
  while (r->from < x->rank && !(mask >> r->from & 1)) r->from++;
  r->to = r->from;
  while (r->to < x->rank && (mask >> r->to & 1)) r->to++;
}

static bool is_alone(const Graph *g, const Node *n)
{
  const Group *p = n->group < g->groups.n ? &g->groups.at[n->group] : NULL;
  return p && p->n_parts && n->part >= p->last;
}

/* True if n sums the parts of a long sum. The last block that computes a part runs n, except at
 * -O0. */
static bool joins_parts(const Graph *g, const Node *n)
{
  const Node *x = ir_node(g, value_root(g, n->in[0]));
  uint32_t attr;
  return op_of(x)->tmpl == TMPL_row && ir_elements(x) <= COLUMN_LAST &&
         (attr_find(op_of(x), "channel", &attr) || attr_find(op_of(x), "columns", &attr));
}

/* Returns how many numbers fit in 128 bits: 8 that had 16 bits before they were widened, else 4.
 * The order of a sum depends on this, so it must not depend on which nodes are fused. */
static uint32_t widest_of(const Graph *g, const Node *x)
{
  while (op_of(x)->tmpl == TMPL_alias || is_widening(g, x) || (op_is_step(x) && x->in[0].id))
    x = ir_node(g, x->in[0]);
  bool wide = x->dtype == AMPC_F32 || x->dtype == AMPC_I32 || x->dtype == AMPC_I64;
  return wide ? 4 : 8;
}

/* Example: for a softmax over axis 1 of [2, 3, 4, 5], outer is 2, length 3, inner 20. */
RowShape row_shape(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v), *x = ir_node(g, n->in[0]);
  RowShape r = {.outer = 1, .length = 1, .inner = 1, .widest = widest_of(g, x)};
  r.alone = is_alone(g, n);
  r.joins = joins_parts(g, n);
  if (x->rank) row_axes(n, x, &r);
  for (uint32_t i = 0; i < x->rank; i++)
    *(i < r.from ? &r.outer : i < r.to ? &r.length : &r.inner) *= x->dim[i];
  if (r.loose) r.inner = n->dim[1];
  if (r.loose) r.length = ir_elements(x) / r.inner;
  r.part_rows = r.parts ? column_part_rows(r.length, r.inner) : r.length;
  return r;
}

bool row_is_flat(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  return op_of(n)->code.result != STATEMENT_each &&
         ir_elements(n) == ir_elements(ir_node(g, n->in[0]));
}

bool row_has_columns(const RowShape *r)
{
  return r->inner > 1 || r->parts;
}

ColumnTile row_tile(const RowShape *r)
{
  if (r->joins && r->outer == 1) return column_join_tile(r->inner, r->alone);
  return column_tile(r->parts ? r->parts : r->outer, r->part_rows, r->inner, r->widest);
}

/* Note [rows]
 * A thread of a row loads 128 bits at once: 8 elements, or 4 of 32 bits. With few threads for a
 * row, each has several loads in flight and keeps its vectors in registers for the next walk, and
 * combining the sums is cheap. So a row that fits in the registers of a warp gets a warp. It gets
 * fewer lanes (which together read at least 32 bytes) if the threads of all rows still keep every
 * multiprocessor busy. Longer rows get a block. Only the shape decides, because the threads fix the
 * order of the sum and so its bits.
 *
 * Note [odd rows]
 * The vector width does not divide a row of 50,257 elements. The threads first process whole
 * vectors, then the remaining elements, at most one each. An operand with gaps (Note [pitch]) is
 * loaded in vectors, others element by element. The order of the sum is the same in both cases. */
RowWalk row_walk(const RowShape *r)
{
  enum { WARP = 32, BUSY = 16384 /* threads */, ODD = 512 };
  RowWalk w = {.vector = dividing_vector(r->length, r->widest), .threads = CUDA_BLOCK};
  if (w.vector == 1 && r->length >= ODD) w.vector = r->widest;
  const int64_t held = w.vector > 1 ? 32 : 8; /* elements that a thread holds: ROW_WALK */
  if (r->length > WARP * w.vector && (r->length > WARP * held || r->outer * WARP < BUSY)) return w;
  for (w.threads = w.vector > 1 ? 2 : 4; w.threads < WARP; w.threads *= 2) {
    if (w.threads * w.vector >= r->length) break;
    if (w.threads * held >= r->length && r->outer * w.threads >= BUSY) break;
  }
  return w;
}

bool group_is_dear(const Graph *g, const Group *p)
{
  for (uint32_t i = 0; i < p->n; i++)
    if (op_of(ir_node(g, p->nodes[i]))->code.dear) return true;
  return false;
}

static uint32_t vector_of(const Compile *c, const Group *p, const KernelArgs *args,
                          const LoopShape *left)
{
  enum { BUSY = 16384 }; /* threads */
  int64_t columns = left->rank ? left->dim[left->rank - 1] : 1, all = loop_elements(left);
  bool dear = group_is_dear(c->graph, p);
  if (all < 256) return 1;
  for (uint32_t n = widest_vector(c, args); n >= 4; n /= 2)
    if (columns % n == 0 && (!dear || all / n >= BUSY)) return n;
  return 1;
}

bool walk_has_vectors(const MapWalk *m, const Access *a)
{
  const LoopShape *s = &m->left;
  if (m->vector == 1 || !s->rank || a->stride[s->rank - 1] != 1 || a->offset % m->vector)
    return false;
  for (uint32_t i = 0; i + 1 < s->rank; i++)
    if (a->stride[i] % m->vector) return false;
  return true;
}

bool walk_shares_vectors(const MapWalk *m, const Access *a)
{
  for (uint32_t i = 0; i + 1 < m->left.rank; i++)
    if (a->stride[i]) return false;
  return walk_has_vectors(m, a);
}

int64_t map_threads(const MapWalk *m)
{
  int64_t columns = m->left.dim[m->left.rank - 1], rows = loop_elements(&m->left) / columns;
  return (rows + m->rows - 1) / m->rows * (columns / m->vector);
}

/* Note [shared rows]
 * Some operands are the same in all rows, such as a bias or the moments of a channel. A thread that
 * computes several rows loads such operands once, and computes once the nodes that depend on them
 * alone. These operands may need more loads than the others. In the backward of a batch norm, a
 * thread loads 160 bytes of f32 numbers for 8 channels (mean, rstd, weight, two sums), but only 32
 * bytes of dy and x for each row. A thread computes two rows if at least BUSY threads remain, one
 * block for each multiprocessor. It computes more rows as long as MANY threads remain. The loop
 * over them is unrolled by two only: the values of a third row would cost registers. */
static uint32_t rows_of(const MapWalk *m)
{
  enum { PAIR = 2, BUSY = 32768, MANY = 262144 /* threads */ };
  bool shares = false;
  if (m->vector == 1 || m->left.rank < 2) return 1;
  for (uint32_t i = 1; i < m->walks.n; i++) shares |= walk_shares_vectors(m, &m->joined[i]);
  int64_t vectors = loop_elements(&m->left) / m->vector, pairs = vectors / PAIR / MANY;
  if (!shares || vectors / PAIR < BUSY) return 1;
  return (uint32_t)(PAIR * (pairs < 1 ? 1 : pairs));
}

/* Note [gaps]
 * If all values of an elementwise kernel have the same pitch (Note [pitch]), the kernel computes
 * the gaps, too; nothing reads them. So its loop has one axis and whole vectors. The gaps are
 * skipped if one of the values has none, such as a gradient, or if the value of an element depends
 * on its index, such as a random number. */
static bool has_gaps(const Graph *g, const Node *n, Value in, int64_t pitch)
{
  const Node *x = value_shape(g, in), *root = ir_node(g, value_root(g, in));
  bool made_here = root->group == n->group && root->part == n->part;
  return made_here || (x->pitch ? x->pitch == pitch : !x->rank || x->dim[x->rank - 1] == 1);
}

/* Returns the pitch of the rows that the kernel walks with their gaps; 0: it walks no gaps. */
static int64_t walked_pitch(const Graph *g, const Group *p)
{
  int64_t pitch = ir_node(g, p->nodes[p->n - 1])->pitch;
  for (uint32_t i = 0; i < p->n && pitch; i++) {
    const Node *n = ir_node(g, p->nodes[i]);
    if (op_of(n)->tmpl != TMPL_map || op_has(n, T_effect) || op_draws(n)) return 0;
    if (op_of(n)->code.uses_index || !ir_same_dims(n, ir_node(g, p->nodes[0]))) return 0;
    if (n->place.space != AMPC_NONE && n->pitch != pitch) return 0;
    for (uint32_t k = 0; k < n->n_in; k++)
      if (n->in[k].id && !has_gaps(g, n, n->in[k], pitch)) return 0;
  }
  return pitch;
}

/* Axes are merged if all operands permit it: not for [32, 512] + [512], but for [32, 512] + [32,
 * 512]. With fewer axes, the index needs fewer divisions. */
MapWalk map_walk(Compile *c, const Group *p, const KernelArgs *args)
{
  const Graph *g = c->graph;
  MapWalk m = {.shape = loop_shape_of(node_walked(g, p->nodes[0]))};
  int64_t pitch = walked_pitch(g, p);
  if (pitch) m.shape.dim[m.shape.rank - 1] = pitch;
  vec_push(c->arena, &m.walks, access_whole(&m.shape));
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(g, p->nodes[i]);
    for (uint32_t k = 0; k < n->n_in; k++)
      if (n->in[k].id) vec_push(c->arena, &m.walks, access_operand(c, &m.shape, n, k));
  }
  for (uint32_t i = 0; i < p->n; i++)
    if (ir_node(g, p->nodes[i])->pitch)
      vec_push(c->arena, &m.walks, access_all(&m.shape, ir_node(g, p->nodes[i])));
  m.left = m.shape;
  m.joined = arena_array(c->arena, Access, m.walks.n);
  memcpy(m.joined, m.walks.at, m.walks.n * sizeof *m.joined);
  loop_collapse(&m.left, m.joined, m.walks.n);
  m.vector = args && group_is_map(g, p) ? vector_of(c, p, args, &m.left) : 1;
  m.rows = rows_of(&m);
  return m;
}

/* ---- windows ---- */

/* The most pixels of a tile in backward. The sums of a tile must fit in registers and, on the CPU,
 * where vectors are long, on the stack. */
enum { MOST_OF_TILE = 4 };

static bool is_backward(const Node *n)
{
  return op_of(n)->gradient == grad_none;
}

/* True if tiles of backward are as large as a stride, so that each window is read once if windows
 * do not overlap. If a stride is too large, tiles are single pixels. */
static bool has_tiles(const Node *n)
{
  return attr_int(n, "stride0") * attr_int(n, "stride1") <= MOST_OF_TILE;
}

bool windows_read_once(const Node *n)
{
  return (attr_int(n, "kernel0") - 1) * attr_int(n, "dil0") < attr_int(n, "stride0") &&
         (attr_int(n, "kernel1") - 1) * attr_int(n, "dil1") < attr_int(n, "stride1") &&
         (!is_backward(n) || has_tiles(n));
}

WindowWalk window_walk(Compile *c, const Group *p, const KernelArgs *args)
{
  const Graph *g = c->graph;
  const Node *n = ir_node(g, p->anchor);
  bool back = is_backward(n);
  ImageDims d = ir_image_dims(n);
  int64_t stride[2] = {attr_int(n, "stride0"), attr_int(n, "stride1")};
  WindowWalk w = {.vector = dividing_vector(d.c, widest_vector(c, args)), .tile = {1, 1}};
  w.threads = d.n * (d.c / w.vector);
  for (uint32_t i = 0; i < 2; i++) {
    if (back && has_tiles(n)) w.tile[i] = stride[i];
    int64_t padding = back ? attr_int(n, i ? "pad1" : "pad0") : 0;
    w.all[i] = (d.size[i] + padding - 1) / w.tile[i] + 1;
    w.threads *= w.all[i];
  }
  return w;
}
