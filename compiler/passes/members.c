/* Pass members: makes a body for one member of several that train together.
 *
 * Needs IR_SHAPED. Why here: it must see the ops of the job before casts and gradients are added;
 * pass gradient differentiates the sums that it adds.
 *
 * Note [samples]
 * The samples of a batch are shared out to members, and each runs the body on its share. The
 * results must be those of the whole batch. So a value that is computed from several samples is
 * summed over the members: a loss, the number of tokens by which a loss is divided, a metric.
 *
 * Pass lower elaborates the job a second time, for the whole batch: the twin. If a share is the
 * whole batch (a last batch of one sample), the twin has twice as many samples. A comparison of the
 * two graphs tells which axes of a value are samples, whatever ops have reshaped it: these axes
 * have other sizes. A literal that differs depends on the number of samples; the twin's literal
 * replaces it.
 *
 * Each value has a kind:
 *   ALIKE    the same for all members: weights, settings, what is computed from them
 *   SAMPLES  has an axis of samples; member v has those of its share
 *   SUM      a sum over samples. The value of the whole batch is the sum over the members
 *   MEAN     a mean over samples. The value of the whole batch is the mean, weighted by samples
 *   LOCAL    a statistic of the member's own samples, or computed from one: batch norm. It is not
 *            summed
 * A SUM or MEAN keeps its kind through linear ops. Before any other op it is summed over the
 * members, and then it is ALIKE. What is left at the end of a body (the loss, metrics, running
 * statistics) is summed together, up to MOST_PACKED values in one exchange. */
#include "compiler/graph/optimizers.h"
#include "passes.h"
#include <string.h>

typedef enum Kind { ALIKE, SAMPLES, SUM, MEAN, LOCAL } Kind;

/* How elements follow each other along the axis of samples.
 *   ANY      all are equal: ones(n)
 *   WHOLE    all elements of a sample, then those of the next
 *   SPLIT    a reshape from [4, n] to [4 n] has put samples side by side: the elements of a sample
 *            are apart. Random numbers cannot be shared out so */
typedef enum Order { ANY, WHOLE, SPLIT } Order;

typedef struct Pass {
  Compile *c;
  const Graph *twin;
  Rewrite r;
  Kind *kind;            /* by old id */
  uint8_t *axes;         /* by old id: mask of the axes of samples */
  uint8_t *order;        /* by old id: an Order */
  Value *summed;         /* by old id: the value of the whole batch, if it has been summed */
  VEC(uint32_t) pending; /* old ids of effects that wait for the sum of their first input */
} Pass;

static const BlockInfo *info_of(const Pass *p, const Node *n)
{
  return &p->c->graph->blocks.at[n->block];
}

static void refuse(Pass *p, const Node *n)
{
  const char *what = n->op == op_named("indices") ? "this numbers the samples" : "combines samples";
  const char *op =
      n->op == op_named("indices") ? "" : arena_printf(p->c->arena, "%s ", op_of(n)->name);
  diag_error(p->c, E605, n->span, "%s%s of a batch, and %u members share out the batch", op, what,
             p->c->graph->members);
  diag_help(p->c, "sums, means and batch norms over samples are possible; for all else, train with "
                  "one rank");
}

/* ---- comparison with the twin ---- */

/* Whether the op computes a statistic of channels over samples, in parts, whose number depends on
 * the samples. In an instance norm the samples themselves are the channels. */
static bool is_statistic(const Pass *p, const Node *n)
{
  uint32_t at;
  if (op_of(n)->tmpl != TMPL_row || !attr_find(op_of(n), "channel", &at)) return false;
  return !(p->axes[n->in[0].id] >> n->attr[at].i & 1);
}

/* Sets the axes of samples of a node. Returns false after a message if the job does other
 * operations for other numbers of samples. */
static bool compare(Pass *p, uint32_t id)
{
  const Node *n = &p->r.old[id];
  const Node *m = id < p->twin->nodes.n ? &p->twin->nodes.at[id] : NULL;
  bool same =
      m && m->op == n->op && m->rank == n->rank && m->block == n->block && m->n_in == n->n_in;
  if (!same) {
    diag_error(p->c, E605, n->span,
               "the operations of this job depend on the number of samples in a batch, so the "
               "batch cannot be shared out");
    return false;
  }
  int64_t own = info_of(p, n)->batch, theirs = p->twin->blocks.at[n->block].batch;
  for (uint32_t i = 0; i < n->rank && !is_statistic(p, n) && same; i++) {
    if (n->dim[i] == m->dim[i]) continue;
    p->axes[id] |= (uint8_t)(1u << i);
    same = n->dim[i] * theirs == m->dim[i] * own; /* not one element more than samples */
  }
  if (!same) refuse(p, n);
  return same;
}

/* Whether the twin has the whole batch; if a member has it, the twin has twice as many samples. */
static bool twin_is_whole(const BlockInfo *b)
{
  return b->batch != b->whole;
}

/* Sets which numbers of its stream a random op uses: those of its samples in the whole batch.
 * `axis` is the axis of samples. */
static Draws draws_of(const Pass *p, uint32_t id, uint32_t axis)
{
  const Node *n = &p->r.old[id], *m = &p->twin->nodes.at[id];
  const BlockInfo *b = info_of(p, n);
  int64_t before = dims_product(n->dim, axis);
  int64_t after = dims_product(n->dim + axis + 1, n->rank - axis - 1u);
  int64_t samples = twin_is_whole(b) ? b->whole - b->batch : b->batch;
  Draws out = {.each = (m->dim[axis] - n->dim[axis]) / samples * after};
  if (before == 1 || !twin_is_whole(b)) return out;
  out.span = n->dim[axis] * after;
  out.skip = (m->dim[axis] - n->dim[axis]) * after;
  return out;
}

/* ---- kinds ---- */

static bool is_partial(Kind k)
{
  return k == SUM || k == MEAN;
}

static Kind kind_in(const Pass *p, const Node *n, uint32_t i)
{
  return n->in[i].id ? p->kind[n->in[i].id] : ALIKE;
}

static bool any_in(const Pass *p, const Node *n, Kind kind)
{
  for (uint32_t i = 0; i < n->n_in; i++)
    if (kind_in(p, n, i) == kind) return true;
  return false;
}

/* Returns the mask of the axes that the op works along; 0: it treats all elements alike, or only
 * moves them. */
static uint64_t worked_axes(const Node *n)
{
  const OpInfo *op = op_of(n);
  uint32_t at;
  if (op_has(n, T_permutes | T_repeats) || !attr_find(op, "dim", &at)) return 0;
  if (op->signature.attr[at].kind == ATTR_axis) return 1ull << n->attr[at].i;
  return n->attr[at].i ? (uint64_t)n->attr[at].i : ~0ull;
}

/* Whether attention combines samples: they are keys, queries with a position, or features. Or they
 * are heads of queries but not of keys, and their number decides which heads share keys. */
static bool attends_to_samples(const Pass *p, const Node *n)
{
  enum { ROW = 1 << 1, HEAD = 1 << 2, FEATURE = 1 << 3 };
  if (!op_has(n, T_tiles)) return false;
  unsigned q = p->axes[n->in[0].id], k = p->axes[n->in[1].id], causal = attr_int(n, "causal") != 0;
  return ((q ^ k) & HEAD) || (k & ROW) || (q & FEATURE) || (causal && q & ROW);
}

/* Whether the op treats samples differently by their position in the batch, or combines samples in
 * another way than by a sum. */
static bool mixes_samples(const Pass *p, const Node *old)
{
  uint32_t channel;
  uint64_t worked = worked_axes(old), of_images = op_image_inputs(op_of(old));
  if (attr_find(op_of(old), "channel", &channel)) of_images = 0; /* the other axes are alike */
  if (op_has(old, T_sums)) return false;
  if (attends_to_samples(p, old)) return true;
  for (uint32_t i = 0; i < old->n_in; i++) {
    uint8_t in = p->axes[old->in[i].id];
    if (worked & in || (of_images >> i & 1 && in > 1)) return true;
  }
  return false;
}

/* Returns the kind of a value without an axis of samples that is computed from samples. */
static bool reduced_kind(const Pass *p, const Node *n, Kind *out)
{
  if (is_statistic(p, n))
    *out = LOCAL;
  else if (op_has(n, T_sums))
    *out = n->op == op_named("mean") ? MEAN : SUM;
  else if (op_of(n)->tmpl == TMPL_gemm || op_has(n, T_keeps_sum))
    *out = SUM;
  else
    return false;
  return true;
}

/* ---- sums over the members ---- */

static Cursor cursor_of(const Pass *p, uint32_t id)
{
  Cursor at = ir_cursor_like(&p->r.old[id]);
  at.region = 0;
  return at;
}

static Value times(Pass *p, const Cursor *at, Value x, double factor)
{
  if (factor == 1) return x;
  return ir_binary(p->c, at, op_named("mul"), x, ir_number(p->c, at, factor));
}

/* Returns what the member contributes to the sum over all members. */
static Value contribution(Pass *p, const Cursor *at, uint32_t id)
{
  const BlockInfo *b = info_of(p, &p->r.old[id]);
  Value x = p->r.map[id];
  if (p->kind[id] == SUM) return times(p, at, x, b->idle ? 0 : 1);
  x = ir_cast_asked(p->c, at, x, AMPC_F32);
  return times(p, at, x, b->idle ? 0 : (double)b->batch / (double)b->whole);
}

/* Returns the mean that has the same gradient as a sum. */
static Value as_mean(Pass *p, uint32_t id)
{
  const BlockInfo *b = info_of(p, &p->r.old[id]);
  Cursor at = cursor_of(p, id);
  if (p->kind[id] != SUM) return p->r.map[id];
  return times(p, &at, p->r.map[id], (double)b->whole / (double)b->batch);
}

/* Returns the value of the whole batch, in the type of the member's value. */
static Value whole_value(Pass *p, uint32_t id)
{
  const Node *n = &p->r.old[id];
  Cursor at = cursor_of(p, id);
  if (p->summed[id].id) return p->summed[id];
  if (n->loop) refuse(p, n);
  Value own = p->r.map[id], x = contribution(p, &at, id);
  if (!dtype_is_float(n->dtype)) x = ir_cast_asked(p->c, &at, x, AMPC_F32);
  x = ir_append(p->c, &at, OP_member_sum, &x, 1, NULL);
  if (dtype_is_float(n->dtype)) x = ir_append(p->c, &at, OP_cast_like, (Value[]){x, own}, 2, NULL);
  return p->summed[id] = x;
}

static void settle(Pass *p, Node *n, uint32_t id, uint32_t i)
{
  uint32_t from = p->r.old[id].in[i].id;
  if (is_partial(p->kind[from])) n->in[i] = whole_value(p, from);
}

static bool all_in(const Pass *p, const Node *old, Kind kind)
{
  bool all = true;
  for (uint32_t i = 0; i < old->n_in; i++) all = all && kind_in(p, old, i) == kind;
  return all;
}

/* Settles the inputs of a node that are sums or means. Returns the kind that the result keeps;
 * ALIKE if it keeps none. */
static Kind settle_inputs(Pass *p, Node *n, uint32_t id)
{
  const Node *old = &p->r.old[id];
  Kind a = kind_in(p, old, 0), b = old->n_in > 1 ? kind_in(p, old, 1) : ALIKE;
  bool samples = any_in(p, old, SAMPLES), adds = n->op == OP_add || n->op == op_named("sub");
  if (!any_in(p, old, SUM) && !any_in(p, old, MEAN)) return ALIKE;
  if (op_has(n, T_linear) && !samples && all_in(p, old, a)) return a;
  if (adds && !samples) {
    if (a == b) return a;
    for (uint32_t i = 0; i < 2; i++) n->in[i] = as_mean(p, old->in[i].id);
    return MEAN;
  }
  bool mul = n->op == op_named("mul"),
       divides = n->op == op_named("div") || n->op == op_named("counted_mean");
  bool scales = (mul || divides) && !samples;
  if (scales && is_partial(a)) {
    settle(p, n, id, 1);
    return a;
  }
  if (scales && mul) return b;
  for (uint32_t i = 0; i < n->n_in; i++) settle(p, n, id, i);
  return ALIKE;
}

/* ---- nodes ---- */

/* The number of attention's weights counts, not that of its results. */
static int64_t weights_each(const Pass *p, uint32_t id)
{
  const Node *n = &p->r.old[id], *k = &p->r.old[n->in[1].id];
  Draws by_result = draws_of(p, id, 0);
  return by_result.each / (n->dim[1] * n->dim[3]) * n->dim[1] * k->dim[1];
}

static void set_draws(Pass *p, Node *n, uint32_t id)
{
  uint32_t axis = 0;
  if (!op_draws(n) || !p->axes[id]) return;
  while (!(p->axes[id] >> axis & 1)) axis++;
  n->draws = draws_of(p, id, axis);
  if (op_has(n, T_tiles)) n->draws.each = weights_each(p, id);
}

/* Replaces a member_mean by the mean over the members. */
static void copy_mean(Pass *p, uint32_t id)
{
  uint32_t of = p->r.old[id].in[0].id;
  p->r.map[id] = p->kind[of] == ALIKE ? p->r.map[of] : whole_value(p, of);
}

/* Returns the number of elements in front of the axis of samples. */
static int64_t before_samples(const Pass *p, uint32_t id)
{
  uint32_t axis = 0;
  while (!(p->axes[id] >> axis & 1)) axis++;
  return dims_product(p->r.old[id].dim, axis);
}

/* Sets the order of a value with an axis of samples. Returns false if the result of several members
 * would not be that of the whole batch. */
static bool set_order(Pass *p, uint32_t id)
{
  const Node *n = &p->r.old[id];
  Order order = op_draws(n) || n->op == OP_source ? WHOLE : ANY;
  for (uint32_t i = 0; i < n->n_in; i++) {
    Order own = p->axes[n->in[i].id] ? p->order[n->in[i].id] : ANY;
    if (order != ANY && own != ANY && own != order) return false;
    if (own != ANY) order = own;
  }
  if (n->op == OP_reshape && order != ANY && p->axes[n->in[0].id]) {
    int64_t before = before_samples(p, n->in[0].id), after = before_samples(p, id);
    if (before < after && order == WHOLE) return false;
    if (before != after) order = before > after ? SPLIT : WHOLE;
  }
  p->order[id] = (uint8_t)order;
  return true;
}

static void copy_value(Pass *p, uint32_t id)
{
  const Node *old = &p->r.old[id];
  if (old->op == OP_member_mean) {
    copy_mean(p, id);
    return;
  }
  const BlockInfo *b = info_of(p, old);
  Node n = ir_rewrite_mapped(&p->r, id);
  Kind kept = settle_inputs(p, &n, id);
  bool samples = any_in(p, old, SAMPLES);
  if (op_has(&n, T_literal) && twin_is_whole(b)) n.attr[0] = p->twin->nodes.at[id].attr[0];
  p->kind[id] = kept != ALIKE                      ? kept
                : p->axes[id] || n.op == OP_source ? SAMPLES
                : any_in(p, old, LOCAL)            ? LOCAL
                                                   : ALIKE;
  bool pairs = p->axes[id] & (p->axes[id] - 1); /* two axes of samples: each with each */
  bool numbers = p->axes[id] && n.op == op_named("indices"); /* each member would begin at 0 */
  if (pairs || numbers || (p->axes[id] && !set_order(p, id)) ||
      (samples && mixes_samples(p, old)) ||
      (samples && !p->axes[id] && !reduced_kind(p, old, &p->kind[id])))
    refuse(p, old);
  set_draws(p, &n, id);
  ir_rewrite_add(&p->r, id, &n);
}

/* ---- effects ---- */

enum { MOST_PACKED = 64 };

/* Sums the first inputs of `n` effects in one exchange. */
static void sum_packed(Pass *p, const uint32_t *ids, uint32_t n)
{
  Value in[MOST_PACKED];
  int64_t start = 0;
  Cursor at = cursor_of(p, ids[n - 1]);
  for (uint32_t i = 0; i < n; i++) {
    int64_t size = ir_elements(&p->r.old[ids[i]]);
    in[i] = ir_cast_asked(p->c, &at, contribution(p, &at, ids[i]), AMPC_F32);
    in[i] = ir_reshape(p->c, &at, in[i], &size, 1);
  }
  Value all = n == 1 ? in[0] : ir_append(p->c, &at, OP_cat, in, n, NULL);
  all = ir_append(p->c, &at, OP_member_sum, &all, 1, NULL);
  for (uint32_t i = 0; i < n; i++) {
    const Node *old = &p->r.old[ids[i]];
    int64_t stop = start + ir_elements(old);
    const NamedAttr *part =
        ATTRS({"dim", {.i = 0}}, {"start", {.i = start}}, {"stop", {.i = stop}});
    Value own = n == 1 ? all : ir_append(p->c, &at, OP_slice, &all, 1, part);
    p->summed[ids[i]] = ir_reshape(p->c, &at, own, old->dim, old->rank);
    start = stop;
  }
}

/* Appends the effects that wait, after the sums of their inputs. Pass gradient decides by an input
 * of running statistics whether a loss needs them: that stays the member's own value. */
static void flush(Pass *p)
{
  uint32_t ids[MOST_PACKED], n = 0;
  bool *taken = arena_array(p->c->arena, bool, p->r.n_old);
  for (uint32_t i = 0; i < p->pending.n; i++) {
    uint32_t of = p->r.old[p->pending.at[i]].in[0].id;
    if (!p->summed[of].id && !taken[of]) ids[n++] = of;
    taken[of] = true;
    if (n == MOST_PACKED || (n && i + 1 == p->pending.n)) sum_packed(p, ids, n), n = 0;
  }
  for (uint32_t i = 0; i < p->pending.n; i++) {
    uint32_t id = p->pending.at[i], last = p->r.old[id].n_in - 1u;
    Node effect = ir_rewrite_mapped(&p->r, id);
    bool of = op_has(&effect, T_running) && !op_has(&effect, T_assigns);
    if (of && last && !effect.in[last].id) effect.in[last] = effect.in[0];
    effect.in[0] = p->summed[p->r.old[id].in[0].id];
    ir_rewrite_add(&p->r, id, &effect);
  }
  p->pending.n = 0;
}

static bool reads_inputs(const Node *n)
{
  const OpInfo *op = op_of(n);
  for (uint32_t i = 0; i < op->n_file_args; i++)
    if (op->file_args[i] == FILE_inputs) return true;
  return false;
}

static void copy_effect(Pass *p, uint32_t id)
{
  const Node *old = &p->r.old[id];
  Kind kind = old->n_in ? kind_in(p, old, 0) : ALIKE;
  if (reads_inputs(old) && kind != ALIKE && kind != SAMPLES) {
    vec_push(p->c->arena, &p->pending, id);
    return;
  }
  if (old->op == OP_minimize || op_has(old, T_ends_body)) flush(p);
  Node n = ir_rewrite_mapped(&p->r, id);
  if (old->op == OP_minimize) n.in[0] = as_mean(p, old->in[0].id);
  if (op_has(old, T_running) && kind == ALIKE && twin_is_whole(info_of(p, old)))
    memcpy(n.attr, p->twin->nodes.at[id].attr, sizeof n.attr); /* the factor of the whole batch */
  ir_rewrite_add(&p->r, id, &n);
}

/* ---- buckets ---- */

/* Note [buckets]
 * Members exchange the gradients of a group when backward has completed all of them. So that the
 * exchange runs beside backward, a large group is cut into buckets, which are groups with the same
 * settings. Backward completes parameters roughly from the last one to the first. A table that is
 * also the head is the first parameter, and completed last. Vectors have buckets of their own:
 * often one kernel at the end of backward makes many of them. */
enum { BUCKET = 1 << 24 /* elements: 64 MiB */ };

typedef struct Bucket {
  Optimizer *o;
  uint32_t from, group; /* the group that is cut; the bucket that is being filled */
  int64_t elements;
} Bucket;

/* Adds a parameter to the bucket, or to the next one if the bucket is full. */
static void fill_bucket(Compile *c, Bucket *b, Parameter *p)
{
  int64_t n = dims_product(p->dim, p->rank);
  if (b->elements && b->elements + n > BUCKET) {
    ParamGroup next = b->o->groups.at[b->from];
    b->group = b->o->groups.n;
    b->elements = 0;
    vec_push(c->arena, &b->o->groups, next);
  }
  p->group = b->group;
  b->elements += n;
}

static void cut_group(Compile *c, uint32_t optimizer, uint32_t group)
{
  Graph *g = c->graph;
  uint32_t *own = arena_array(c->arena, uint32_t, g->params.n), n = 0;
  Bucket b = {&g->optimizers.at[optimizer], group, group, 0};
  for (uint32_t vectors = 0; vectors < 2; vectors++)
    for (uint32_t i = g->params.n; i > 0; i--) {
      const Parameter *p = &g->params.at[i - 1];
      bool is_own = p->optimizer == (int)optimizer && p->group == group;
      if (is_own && (p->rank < 2) == vectors) own[n++] = i - 1;
    }
  for (uint32_t i = 0; i < n; i++) fill_bucket(c, &b, &g->params.at[own[i]]);
}

static void cut_groups(Compile *c)
{
  Graph *g = c->graph;
  for (uint32_t i = 0; i < g->optimizers.n; i++)
    for (uint32_t k = 0, n = g->optimizers.at[i].groups.n; k < n; k++)
      if (optimizer_slices(g, &g->optimizers.at[i]) > 1) cut_group(c, i, k);
}

bool pass_members(Compile *c)
{
  Graph *g = c->graph;
  /* meanings refer to the nodes of pass lower, and members change no type */
  if (g->members <= 1 || c->options.keep_meanings) return true;
  for (uint32_t i = 0; i < g->params.n; i++) {
    if (g->params.at[i].of < 0) continue;
    diag_error(c, E605, g->params.at[i].span,
               "`%s` has several optimizers; %u members can train only parameters with one",
               g->params.at[i].path, g->members);
    return false;
  }
  cut_groups(c);
  Pass p = {.c = c, .twin = c->twin};
  ir_rewrite_begin(&p.r, c);
  p.kind = arena_array(c->arena, Kind, p.r.n_old);
  p.axes = arena_array(c->arena, uint8_t, p.r.n_old);
  p.order = arena_array(c->arena, uint8_t, p.r.n_old);
  p.summed = arena_array(c->arena, Value, p.r.n_old);
  for (uint32_t id = 1; id < p.r.n_old && !diag_error_count(c); id++) {
    const Node *n = &p.r.old[id];
    bool shared = g->blocks.at[n->block].kind != AMPC_INFER;
    if (id > 1 && n->block != n[-1].block) flush(&p);
    if (!shared)
      ir_rewrite_copy(&p.r, id);
    else if (compare(&p, id))
      op_has(n, T_effect) ? copy_effect(&p, id) : copy_value(&p, id);
  }
  if (!diag_error_count(c)) flush(&p);
  return diag_error_count(c) == 0;
}
