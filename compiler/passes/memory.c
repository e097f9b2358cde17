/* Pass memory: where every value's bytes are.
 *
 * needs IR_FUSED: the groups and their order. Gives IR_PLACED: Node.place, Group.workspace, offsets
 * of parameters, sources and optimizers' ranges, BlockInfo.work_bytes. Why here: lifetimes are
 * known only when it is known which nodes share a kernel.
 *
 * A value of WORK lives from the command that writes it to the last that reads it. Values are
 * placed greatest first at the lowest offset where nothing that lives at the same time lies; that
 * keeps close to the bound (the greatest sum of bytes alive at once) and depends on nothing but the
 * graph. An elementwise result takes the room of an operand that dies with it (reuse.c). */
#include "command.h"
#include "passes.h"
#include "reuse.h"
#include "ampc_state.h"
#include <stddef.h>
#include <stdlib.h>

typedef struct Room { /* a stretch of WORK and when it is in use */
  ampc_ref *place;
  int64_t bytes;
  uint32_t first, last; /* indices of commands, both included */
  uint32_t order;       /* of creation: breaks ties */
} Room;

typedef struct Placement {
  Compile *c;
  int64_t align;
  VEC(Room) rooms; /* of the current block */
  uint32_t *room;  /* value -> its room in `rooms` + 1; 0: none */
} Placement;

static int64_t round_up(int64_t n, int64_t to)
{
  return (n + to - 1) / to * to;
}

/* ---- parameters, inputs, state
 * -------------------------------------------------------------------- */

enum { PARAM_ALIGN = 64 }; /* elements: 256 bytes of f32, so that vector loads never straddle */

static int64_t place_owned_by(Graph *g, int owner, uint32_t group, int64_t at)
{
  for (uint32_t i = 0; i < g->params.n; i++) {
    Parameter *p = &g->params.at[i];
    if (p->buffer || p->optimizer != owner || p->group != group) continue;
    int64_t n = 1;
    for (uint32_t k = 0; k < p->rank; k++) n *= p->dim[k];
    p->offset = at;
    at += round_up(n, PARAM_ALIGN);
  }
  return at;
}

/* Parameters of a group are neighbours, so that one kernel updates them. */
static int64_t place_optimizer(Graph *g, uint32_t index, int64_t at)
{
  Optimizer *o = &g->optimizers.at[index];
  o->first = at;
  for (uint32_t i = 0; i < o->groups.n; i++) {
    o->groups.at[i].first = at;
    at = place_owned_by(g, (int)index, i, at);
    o->groups.at[i].count = at - o->groups.at[i].first;
  }
  o->count = at - o->first;
  return at;
}

static void place_params(Compile *c)
{
  Graph *g = c->graph;
  int64_t at = 0;
  for (uint32_t i = 0; i < g->optimizers.n; i++) at = place_optimizer(g, i, at);
  place_owned_by(g, -1, 0, at);
  int64_t bytes = 0;
  for (uint32_t i = 0; i < g->params.n; i++) {
    Parameter *p = &g->params.at[i];
    if (!p->buffer) continue;
    int64_t n = 1;
    for (uint32_t k = 0; k < p->rank; k++) n *= p->dim[k];
    p->offset = bytes;
    bytes += round_up(n * ir_dtype_size(c, p->dtype), 256);
  }
}

/* Every block's batch begins at 0 of INPUT; the smaller last batch uses the full one's places. */
static void place_sources(Placement *p)
{
  Graph *g = p->c->graph;
  for (uint32_t b = 0; b < g->blocks.n; b++) {
    const BlockInfo *info = &g->blocks.at[b];
    int64_t at = 0;
    for (uint32_t i = 0; i < info->n_sources; i++) {
      ampc_source *s = &g->sources.at[info->first_source + i];
      if (info->remainder_of >= 0) {
        s->offset = g->sources.at[g->blocks.at[info->remainder_of].first_source + i].offset;
        continue;
      }
      int64_t n = info->batch > 0 ? info->batch : 1;
      for (uint32_t k = 0; k < s->rank; k++) n *= s->dim[k];
      s->offset = at;
      at += round_up(n * ir_dtype_size(p->c, s->dtype), p->align);
    }
  }
}

static ampc_ref leaf_place(Compile *c, const Node *n)
{
  const Graph *g = c->graph;
  int64_t index = n->attr[0].i;
  switch (n->op) {
  case OP_source:
    return (ampc_ref){AMPC_INPUT, g->sources.at[index].offset};
  case OP_param:
    if (g->params.at[index].buffer) return (ampc_ref){AMPC_BUFFER, g->params.at[index].offset};
    return (ampc_ref){AMPC_MASTER, g->params.at[index].offset * ir_dtype_size(c, AMPC_F32)};
  case OP_setting: {
    ampc_program sizes = {.n_optimizers = g->optimizers.n, .n_metrics = g->metrics.n};
    return (ampc_ref){AMPC_STATE, ampc_state_setting(&sizes, (uint32_t)index)};
  }
  case OP_loss_scale:
    return (ampc_ref){AMPC_STATE, offsetof(ampc_state, scale)};
  case OP_step:
    return (ampc_ref){AMPC_STATE, offsetof(ampc_state, body)};
  case OP_epoch:
    return (ampc_ref){AMPC_STATE, offsetof(ampc_state, epoch)};
  case OP_steps_taken:
    return (ampc_ref){AMPC_STATE,
                      (int64_t)(sizeof(ampc_state) + (size_t)index * sizeof(ampc_optimizer) +
                                offsetof(ampc_optimizer, taken))};
  default:
    return (ampc_ref){AMPC_NONE, 0}; /* numbers: literals */
  }
}

static void place_leaves(Compile *c)
{
  Graph *g = c->graph;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    Node *n = &g->nodes.at[id];
    n->place = (ampc_ref){AMPC_NONE, 0};
    if (op_info[n->op].tmpl == TMPL_leaf) n->place = leaf_place(c, n);
    if (!is_working_copy(g, (Value){id})) continue;
    Parameter *p = &g->params.at[ir_node(g, n->in[0])->attr[0].i];
    *(n->dtype == AMPC_F16 ? &p->copy16 : &p->copybf) = true;
    n->place = (ampc_ref){n->dtype == AMPC_F16 ? AMPC_COPY16 : AMPC_COPYBF, p->offset * 2};
  }
}

/* ---- WORK
 * ----------------------------------------------------------------------------------------- */

/* What the vendor library can add to what lies at its result. */
static bool accumulates(const Node *n)
{
  bool weight = op_info[n->op].tmpl == TMPL_gemm || n->op == OP_conv2d_weight;
  return weight && n->dtype == AMPC_F32;
}

/* A product in f32 whose one reader adds it to a gradient writes there itself (beta = 1). */
static void place_gradients(Compile *c, const uint32_t *readers)
{
  Graph *g = c->graph;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (n->op != OP_grad_accumulate) continue;
    Value root = value_root(g, n->in[0]);
    Node *from = ir_node(g, root);
    if (!accumulates(from) || readers[root.id] != 1) continue;
    int64_t offset = g->params.at[n->attr[0].i].offset * ir_dtype_size(c, AMPC_F32);
    from->place = (ampc_ref){AMPC_GRAD, offset};
  }
}

static void read_by(Graph *g, Life *lives, Value v, uint32_t group, uint32_t at)
{
  Value root = value_root(g, v);
  Life *life = &lives[root.id];
  if (at > life->last) life->last = at;
  if (ir_node(g, root)->group != group) life->needed = true;
}

/* Groups are numbered in the order in which their commands run, so a group's index is its time. */
static void find_lives(Graph *g, uint16_t block, uint32_t end, Life *lives, uint32_t *readers)
{
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (n->block != block) continue;
    bool alias = op_info[n->op].tmpl == TMPL_alias;
    if (n->group) lives[id].first = n->group;
    if (n->op == OP_output) read_by(g, lives, n->in[0], 0, end);
    if (alias || !n->group) continue;
    for (uint32_t i = 0; i < n->n_in; i++) {
      if (!n->in[i].id) continue;
      read_by(g, lives, n->in[i], n->group, n->group);
      readers[value_root(g, n->in[i]).id]++;
    }
    if (n->op == OP_grad_norm) lives[id].needed = true;
  }
}

static bool placed_first(const Room *a, const Room *b)
{
  if (a->bytes != b->bytes) return a->bytes > b->bytes;
  return a->order < b->order;
}

static int compare_rooms(const void *a, const void *b)
{
  const Room *const *x = a, *const *y = b;
  return placed_first(*x, *y) ? -1 : 1;
}

/* Keeps the rooms that are placed in order of their offsets. */
static void insert_placed(Room **placed, uint32_t n, Room *r)
{
  uint32_t at = n;
  for (; at > 0 && placed[at - 1]->place->offset > r->place->offset; at--)
    placed[at] = placed[at - 1];
  placed[at] = r;
}

/* Lowest offset at which r meets none of the rooms already placed that live when it does. */
static int64_t lowest_offset(const Room *r, Room **placed, uint32_t n)
{
  int64_t at = 0;
  for (uint32_t i = 0; i < n; i++) { /* in order of offset */
    const Room *p = placed[i];
    if (p->last < r->first || r->last < p->first) continue;
    if (p->place->offset >= at + r->bytes) break;
    if (p->place->offset + p->bytes > at) at = p->place->offset + p->bytes;
  }
  return at;
}

static int64_t pack(Placement *p)
{
  Room **order = arena_array(p->c->arena, Room *, p->rooms.n + 1);
  Room **placed = arena_array(p->c->arena, Room *, p->rooms.n + 1);
  for (uint32_t i = 0; i < p->rooms.n; i++) order[i] = &p->rooms.at[i];
  if (p->rooms.n) qsort(order, p->rooms.n, sizeof *order, compare_rooms);
  int64_t top = 0;
  for (uint32_t i = 0; i < p->rooms.n; i++) {
    Room *r = order[i];
    *r->place = (ampc_ref){AMPC_WORK, lowest_offset(r, placed, i)};
    if (r->place->offset + r->bytes > top) top = r->place->offset + r->bytes;
    insert_placed(placed, i, r);
  }
  return top;
}

static void add_room(Placement *p, ampc_ref *place, int64_t bytes, uint32_t first, uint32_t last)
{
  vec_push(p->c->arena, &p->rooms,
           (Room){place, round_up(bytes ? bytes : 1, p->align), first, last, p->rooms.n});
}

static void add_value_room(Placement *p, uint32_t id, const Life *lives, bool *taken)
{
  Node *n = ir_node(p->c->graph, (Value){id});
  uint32_t last = lives[id].last > lives[id].first ? lives[id].last : lives[id].first;
  n->over = p->c->options.optimize ? value_to_reuse(p->c, (Value){id}, lives, taken) : (Value){0};
  uint32_t over = p->room[n->over.id];
  if (!over) {
    n->over = (Value){0};
    add_room(p, &n->place, ir_bytes(p->c, n), lives[id].first, last);
    p->room[id] = p->rooms.n;
    return;
  }
  taken[n->over.id] = true;
  p->room[id] = over;
  if (p->rooms.at[over - 1].last < last) p->rooms.at[over - 1].last = last;
}

static void place_block(Placement *p, uint16_t block, const Life *lives)
{
  Graph *g = p->c->graph;
  bool *taken = arena_array(p->c->arena, bool, g->nodes.n);
  p->rooms.n = 0;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    Node *n = &g->nodes.at[id];
    bool has_bytes = n->group && n->block == block && n->place.space == AMPC_NONE;
    if (has_bytes && lives[id].needed) add_value_room(p, id, lives, taken);
  }
  for (uint32_t i = 1; i < g->groups.n; i++) {
    Group *group = &g->groups.at[i];
    if (ir_node(g, group->nodes[0])->block != block) continue;
    int64_t bytes = group_workspace(p->c, i);
    group->workspace = (ampc_ref){AMPC_NONE, 0};
    if (bytes > 0) add_room(p, &group->workspace, bytes, i, i);
  }
  g->blocks.at[block].work_bytes = pack(p);
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    Node *n = &g->nodes.at[id];
    if (n->block == block && n->over.id) n->place = ir_node(g, n->over)->place;
  }
}

static void place_aliases(Graph *g)
{
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    Node *n = &g->nodes.at[id];
    if (op_info[n->op].tmpl == TMPL_alias) n->place = ir_node(g, n->in[0])->place;
  }
}

bool pass_memory(Compile *c)
{
  Graph *g = c->graph;
  Placement p = {.c = c, .align = is_cpu_target(c) ? 64 : 256};
  place_params(c);
  place_sources(&p);
  place_leaves(c);
  p.room = arena_array(c->arena, uint32_t, g->nodes.n);
  Life *lives = arena_array(c->arena, Life, g->nodes.n);
  uint32_t *readers = arena_array(c->arena, uint32_t, g->nodes.n);
  for (uint32_t b = 0; b < g->blocks.n; b++)
    find_lives(g, (uint16_t)b, g->groups.n, lives, readers);
  place_gradients(c, readers);
  for (uint32_t b = 0; b < g->blocks.n; b++) place_block(&p, (uint16_t)b, lives);
  place_aliases(g);
  g->facts |= IR_PLACED;
  return true;
}
