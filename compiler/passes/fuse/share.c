/* Part of pass fuse: lets small sets share a launch, Note [parts] in ir.h.
 *
 * A launch costs some microseconds, more than a small kernel computes. Three kinds of work share
 * launches. First, work that one thread block can do (means of a batch, metrics, the decision of an
 * optimizer, the scaler, arithmetic of single values) becomes one launch as far as the order
 * allows. Its parts run one after the other. Second, a small set joins the launch of another set if
 * neither waits for the other: updates of running statistics join that of the weights, and the sums
 * of a bias join other work of backward. Third, the last block of a reduction also does a little
 * work that follows, such as the sum of its parts. */
#include "fuse.h"

enum {
  MAX_POINTERS = 400, /* pointers of a launch; CUDA allows 512 */
  ONE_BLOCK = 4096,   /* elements that one block reduces in the time of a launch */
  SMALL = 4096,       /* elements of a set that may join another launch */
  /* as SMALL, for sums over columns, such as sums over the parts of channels */
  SMALL_COLUMNS = 131072,
};

/* Returns the first node that is neither elementwise nor, next to other nodes, a strided load; or
 * 0. */
static uint32_t anchor_of(const Fuse *f, const uint32_t *nodes, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    const Node *of = node_at(f, nodes[i]);
    bool load = n > 1 && op_has(of, T_strided);
    if (op_of(of)->tmpl != TMPL_map && !load) return nodes[i];
  }
  return 0;
}

/* True if a matrix product may write this gradient to its slot itself, so no kernel is needed. */
static bool may_be_silent(const Fuse *f, uint32_t id)
{
  const Node *n = node_at(f, id);
  return ir_adds_to(n) >= 0 && op_may_add(op_of(ir_node(f->g, value_root(f->g, n->in[0]))));
}

/* ---- what fits ---- */

/* True if one thread block can do the work of the set: an effect with T_one_block, a reduction to
 * one value, or single values. */
static bool is_of_one_block(const Fuse *f, const Members *m)
{
  uint32_t anchor = anchor_of(f, m->nodes.at, m->nodes.n);
  if (!anchor) return ir_elements(node_walked(f->g, (Value){m->nodes.at[0]})) == 1;
  if (op_of(node_at(f, anchor))->tmpl != TMPL_row) return op_has(node_at(f, anchor), T_one_block);
  RowShape s = row_shape(f->g, (Value){anchor});
  return s.outer == 1 && s.inner == 1 && !s.parts && s.length <= ONE_BLOCK;
}

/* True if the set is certainly a generated kernel that may share a launch. */
static bool is_kernel(const Fuse *f, const Members *m)
{
  uint32_t anchor = anchor_of(f, m->nodes.at, m->nodes.n);
  for (uint32_t i = 0; i < m->nodes.n; i++)
    if (may_be_silent(f, m->nodes.at[i])) return false;
  if (anchor && op_of(node_at(f, anchor))->tmpl == TMPL_own)
    return false; /* its text is a whole kernel */
  if (anchor && op_has(node_at(f, anchor), T_tiles))
    return false; /* it has shared memory of its own */
  if (anchor && f->g->members > 1 && node_range(f->g, node_at(f, anchor)) >= 0)
    return false; /* its pointers depend on the member, or only one member runs it */
  OpTemplate tmpl = anchor ? op_of(node_at(f, anchor))->tmpl : TMPL_map;
  if (tmpl == TMPL_loop || tmpl == TMPL_exchange) return false;
  return m->nodes.n > 0 && (!anchor || !op_by_library(op_of(node_at(f, anchor))));
}

/* True if the set computes little: running statistics, a few columns, small elementwise work or
 * moves. */
static bool is_small(const Fuse *f, const Members *m)
{
  uint32_t anchor = anchor_of(f, m->nodes.at, m->nodes.n);
  if (!anchor) return ir_elements(node_walked(f->g, (Value){m->nodes.at[0]})) <= SMALL;
  const Node *n = node_at(f, anchor);
  if (op_has(n, T_running)) return true;
  if (op_of(n)->tmpl == TMPL_move) return ir_elements(n) <= SMALL;
  if (op_of(n)->tmpl != TMPL_row) return false;
  RowShape r = row_shape(f->g, (Value){anchor});
  return ir_elements(ir_node(f->g, n->in[0])) <= (row_has_columns(&r) ? SMALL_COLUMNS : SMALL);
}

/* True if the set is small enough for the last block of the kernel whose result it reads. A sum
 * that is itself cut into parts is too large. Running statistics have their own blocks next to the
 * weights. */
static bool may_be_last(const Fuse *f, const Members *m)
{
  uint32_t anchor = anchor_of(f, m->nodes.at, m->nodes.n);
  if (is_of_one_block(f, m)) return true;
  if (!anchor || op_of(node_at(f, anchor))->tmpl != TMPL_row) return false;
  if (row_shape(f->g, (Value){anchor}).parts) return false;
  return ir_elements(ir_node(f->g, node_at(f, anchor)->in[0])) <= COLUMN_LAST;
}

/* True if the set has a reduction: its blocks have enough threads for the work of the last one. */
static bool may_have_last(const Fuse *f, const Members *m)
{
  uint32_t anchor = anchor_of(f, m->nodes.at, m->nodes.n);
  if (!anchor) return false;
  const Node *n = node_at(f, anchor);
  return (op_has(n, T_partials) && n->rank) || op_of(n)->tmpl == TMPL_row;
}

/* Returns an upper bound on the number of pointers that the set's kernel takes. */
static uint32_t pointers(const Fuse *f, const Members *m)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->nodes.n; i++)
    n += node_at(f, m->nodes.at[i])->n_in + 1u + op_of(node_at(f, m->nodes.at[i]))->n_file_args +
         op_draws(node_at(f, m->nodes.at[i]));
  return n;
}

/* Properties of the sets; the arrays are indexed by set. */
typedef struct Sharing {
  Fuse *f;
  bool *kernel, *one_block, *small;
  bool *last, *has_last; /* results of may_be_last() and may_have_last() */
  uint32_t *pointers;
} Sharing;

static bool fit(const Sharing *s, uint32_t a, uint32_t b)
{
  const Fuse *f = s->f;
  const Members *m = &f->sets.at[a], *w = &f->sets.at[b];
  if (a == b || !s->kernel[a] || !s->kernel[b]) return false;
  if (!run_together(f, m->nodes.at[0], w->nodes.at[0])) return false;
  return s->pointers[a] + s->pointers[b] <= MAX_POINTERS;
}

/* ---- sharing ---- */

/* Moves the nodes of the set to another set. */
static void share(Sharing *s, uint32_t set, uint32_t to)
{
  fuse_join(s->f, set, to);
  s->kernel[set] = false;
  s->small[to] &= s->small[set];
  s->pointers[to] += s->pointers[set];
}

/* Joins all sets that one block can compute into one launch. Two sets stay apart if one waits for
 * the other through a third set. */
static void share_one_block(Sharing *s)
{
  Fuse *f = s->f;
  for (uint32_t set = 1; set < f->sets.n; set++) {
    for (uint32_t to = set - 1; to > 0 && s->kernel[set] && s->one_block[set]; to--) {
      if (!s->one_block[to] || !fit(s, set, to)) continue;
      if (fuse_makes_cycle(f, set, to) || fuse_makes_cycle(f, to, set)) continue;
      share(s, set, to);
      f->in_turn[to] = true;
    }
  }
}

/* Returns the set whose last block may compute `set`: it computes an operand of `set`; else 0. */
static uint32_t find_first(const Sharing *s, uint32_t set)
{
  Fuse *f = s->f;
  const Members *m = &f->sets.at[set];
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    const Node *n = node_at(f, m->nodes.at[i]);
    for (uint32_t k = 0; k < n->n_in; k++) {
      uint32_t to = f->group[f->root[n->in[k].id]];
      if (to && s->has_last[to] && !s->one_block[to] && fit(s, set, to) &&
          !fuse_makes_cycle(f, set, to))
        return to;
    }
  }
  return 0;
}

static void share_last(Sharing *s)
{
  for (uint32_t set = 1; set < s->f->sets.n; set++) {
    uint32_t to = s->kernel[set] && s->last[set] ? find_first(s, set) : 0;
    if (to) share(s, set, to);
  }
}

/* True if `set` may join launch `to`. `small`: `to` must be small. A launch of one block must stay
 * one block. */
static bool may_stand_beside(const Sharing *s, uint32_t set, uint32_t to, bool small)
{
  if (!fit(s, set, to) || (small && !s->small[to])) return false;
  if (s->one_block[to] || s->f->in_turn[set]) return false;
  return fuse_are_apart(s->f, set, to);
}

/* Finds a partner for a small set, among the sets soon after it, then among the sets before it. */
static uint32_t find_partner(const Sharing *s, uint32_t set, bool small)
{
  enum { FAR = 24 };
  Fuse *f = s->f;
  for (uint32_t away = 1; away <= FAR; away++)
    if (set + away < f->sets.n && may_stand_beside(s, set, set + away, small)) return set + away;
  for (uint32_t away = 1; away <= FAR && away < set; away++)
    if (may_stand_beside(s, set, set - away, small)) return set - away;
  return 0;
}

static void share_small(Sharing *s)
{
  for (uint32_t set = 1; set < s->f->sets.n; set++) {
    if (!s->kernel[set] || !s->small[set]) continue;
    uint32_t to = find_partner(s, set, true);
    if (!to) to = find_partner(s, set, false);
    if (to) share(s, set, to);
  }
}

void share_launches(Fuse *f)
{
  Arena *a = f->c->arena;
  uint32_t n = f->sets.n;
  Sharing s = {.f = f,
               .kernel = arena_array(a, bool, n),
               .one_block = arena_array(a, bool, n),
               .small = arena_array(a, bool, n),
               .last = arena_array(a, bool, n),
               .has_last = arena_array(a, bool, n),
               .pointers = arena_array(a, uint32_t, n)};
  for (uint32_t set = 1; set < n; set++) {
    const Members *m = &f->sets.at[set];
    s.kernel[set] = is_kernel(f, m);
    s.pointers[set] = pointers(f, m);
    s.one_block[set] = s.kernel[set] && is_of_one_block(f, m);
    s.small[set] = s.kernel[set] && is_small(f, m);
    s.last[set] = s.kernel[set] && may_be_last(f, m);
    s.has_last[set] = s.kernel[set] && may_have_last(f, m);
  }
  share_one_block(&s);
  share_last(&s);
  share_small(&s);
}

/* ---- groups ---- */

/* Returns a part as a group. Its anchor, the first node that is not elementwise, selects the
 * emitter. In a kernel of several nodes, strided loads belong to the elementwise work. */
static Group make_part(const Fuse *f, const Members *m, uint32_t part, uint32_t number)
{
  Group out = {.nodes = arena_array(f->c->arena, Value, m->nodes.n)};
  uint32_t *nodes = arena_array(f->c->arena, uint32_t, m->nodes.n);
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    if (f->part[m->nodes.at[i]] != part) continue;
    nodes[out.n] = m->nodes.at[i];
    out.nodes[out.n++].id = m->nodes.at[i];
    f->g->nodes.at[m->nodes.at[i]].part = number;
  }
  out.anchor.id = anchor_of(f, nodes, out.n);
  return out;
}

/* The parts of a set, each identified by the number that its set had before launches were
 * shared. */
typedef struct Parts {
  Fuse *f;
  const Members *m;
  VEC(uint32_t) list;
} Parts;

/* Returns the level of a part: 1 + the highest level of the parts that it waits for. */
static uint32_t level_of(Parts *p, uint32_t part);

/* Returns the lowest level that `part` can have, given that it waits for node `id`. */
static uint32_t level_after(Parts *p, uint32_t part, uint32_t id)
{
  bool here = p->f->group[id] == p->f->group[p->m->nodes.at[0]] && p->f->part[id] != part;
  return here ? level_of(p, p->f->part[id]) + 1 : 1;
}

static uint32_t level_of(Parts *p, uint32_t part)
{
  const Fuse *f = p->f;
  uint32_t level = 1;
  if (f->level[part]) return f->level[part];
  for (uint32_t i = 0; i < p->m->nodes.n; i++) {
    uint32_t id = p->m->nodes.at[i];
    const Node *n = node_at(f, id);
    if (f->part[id] != part) continue;
    for (uint32_t k = 0; k < n->n_in; k++) {
      uint32_t after = level_after(p, part, f->root[n->in[k].id]);
      if (after > level) level = after;
    }
    for (uint32_t e = f->order.first[id]; e; e = f->order.edges.at[e].next) {
      uint32_t after = level_after(p, part, f->order.edges.at[e].before);
      if (after > level) level = after;
    }
  }
  return f->level[part] = level;
}

/* Returns the number of elements that a part walks. */
static int64_t work_of(const Parts *p, uint32_t part)
{
  const Fuse *f = p->f;
  int64_t most = 0;
  for (uint32_t i = 0; i < p->m->nodes.n; i++) {
    const Node *n = node_at(f, p->m->nodes.at[i]);
    if (f->part[p->m->nodes.at[i]] != part) continue;
    const Node *walked = op_of(n)->tmpl == TMPL_row ? ir_node(f->g, n->in[0]) : n;
    int64_t range = node_range(f->g, n), work = range >= 0 ? range : ir_elements(walked);
    if (work > most) most = work;
  }
  return most;
}

static bool comes_before(Parts *p, uint32_t a, uint32_t b)
{
  if (level_of(p, a) != level_of(p, b)) return level_of(p, a) < level_of(p, b);
  return !p->f->in_turn[p->f->group[p->m->nodes.at[0]]] && work_of(p, a) < work_of(p, b);
}

/* Sorts parts by level, so that threads synchronize once before each level. Parts of one level
 * that run side by side are sorted by their work: the launch has the name of the last and
 * largest part. */
static void order_parts(Parts *p)
{
  for (uint32_t i = 0; i < p->m->nodes.n; i++) {
    uint32_t part = p->f->part[p->m->nodes.at[i]];
    bool known = false;
    for (uint32_t k = 0; k < p->list.n; k++) known |= p->list.at[k] == part;
    if (known) continue;
    uint32_t at = p->list.n;
    vec_push(p->f->c->arena, &p->list, part);
    for (; at > 0 && comes_before(p, part, p->list.at[at - 1]); at--)
      p->list.at[at] = p->list.at[at - 1];
    p->list.at[at] = part;
  }
}

Group share_group(Fuse *f, const Members *m)
{
  Parts p = {.f = f, .m = m};
  order_parts(&p);
  if (p.list.n == 1) return make_part(f, m, p.list.at[0], 0);
  Group out = {.nodes = arena_array(f->c->arena, Value, m->nodes.n),
               .parts = arena_array(f->c->arena, Group, p.list.n),
               .in_turn = f->in_turn[f->group[m->nodes.at[0]]]};
  for (uint32_t i = 0; i < p.list.n; i++) {
    Group *part = &out.parts[out.n_parts++];
    *part = make_part(f, m, p.list.at[i], i);
    part->meets = i && f->level[p.list.at[i]] > f->level[p.list.at[i - 1]];
    if (out.in_turn || f->level[p.list.at[i]] == 1) out.last = i + 1;
    for (uint32_t k = 0; k < part->n; k++) out.nodes[out.n++] = part->nodes[k];
  }
  return out;
}
