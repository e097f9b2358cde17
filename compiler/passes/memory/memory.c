/* Pass memory: decides where the bytes of every value are.
 *
 * Needs IR_FUSED: the groups and their order. Gives IR_PLACED: Node.place, Group.workspace, offsets
 * of parameters, sources and optimizers' ranges, BlockInfo.work_bytes. Why here: lifetimes depend
 * on which nodes share a kernel.
 *
 * A value in WORK lives from the command that writes it to the last command that reads it. Values
 * are placed one after the other, each at the lowest offset where it overlaps no value that lives
 * at the same time. pack.c chooses the order, which depends on the graph alone. An elementwise
 * result takes the bytes of an operand that dies with it (reuse.c). */
#include "compiler/command/command.h"
#include "compiler/graph/optimizers.h"
#include "compiler/graph/shares.h"
#include "pack.h"
#include "pitch.h"
#include "compiler/passes/passes.h"
#include "reuse.h"
#include "ampc_state.h"
#include <assert.h>
#include <stddef.h>

typedef struct PlacedRoom {
  Room room;
  ampc_ref *place; /* where the offset is stored */
} PlacedRoom;

typedef struct Placement {
  Compile *c;
  int64_t align;
  VEC(PlacedRoom) rooms; /* of the current block */
  uint32_t *room;        /* value -> index of its interval in `rooms` + 1; 0: no interval */
} Placement;

/* ---- parameters, inputs, state ---- */

/* Places the parameters of one group of an optimizer one after the other, from element `at` on.
 * Returns the end. `owner` is -1 for parameters that no optimizer trains. */
static int64_t place_owned_by(Compile *c, int owner, uint32_t group, int64_t at)
{
  Graph *g = c->graph;
  for (uint32_t i = 0; i < g->params.n; i++) {
    Parameter *p = &g->params.at[i];
    if (p->buffer || p->optimizer != owner || p->group != group) continue;
    p->offset = at;
    at += ampc_round_up(param_room(c, p), param_align(g));
  }
  return at;
}

static bool has_shares(const Optimizer *o)
{
  return o->groups.at[o->groups.n - 1].shared;
}

/* Places what one optimizer trains; returns the end. A group has a slice for each member.
 * Parameters of a group are adjacent, and so are the groups of an optimizer. So one kernel updates
 * one interval of MASTER and the same interval of gradients, moments and copies. The shares of an
 * optimizer come after its own parameters. The masters of shares are elsewhere. */
static int64_t place_optimizer(Compile *c, uint32_t index, int64_t at)
{
  Graph *g = c->graph;
  Optimizer *o = &g->optimizers.at[index];
  int64_t slices = optimizer_slices(g, o);
  o->first = at;
  for (uint32_t i = 0; i < o->groups.n; i++) {
    ParamGroup *group = &o->groups.at[i];
    group->first = at;
    at = place_owned_by(c, (int)index, i, at);
    group->count = ampc_round_up(at - group->first, slices * param_align(g));
    at = group->first + group->count;
    group->slice = group->count / slices;
    group->moment = g->moments;
    g->moments += group->slice;
  }
  o->count = at - o->first;
  return at;
}

/* Finds where the masters of each group begin. Shares use the masters of their weights. */
static void find_masters(Graph *g)
{
  for (uint32_t i = 0; i < g->optimizers.n; i++)
    for (uint32_t k = 0; k < g->optimizers.at[i].groups.n; k++) {
      ParamGroup *group = &g->optimizers.at[i].groups.at[k];
      group->master = group->first;
    }
  for (uint32_t i = 0; i < g->params.n; i++) {
    const Parameter *p = &g->params.at[i];
    if (p->of < 0) continue;
    ParamGroup *group = &g->optimizers.at[p->optimizer].groups.at[p->group];
    if (group->first == p->offset) group->master = share_weight(g, p)->offset;
    assert(share_weight(g, p)->offset - group->master == p->offset - group->first);
  }
}

/* Places the optimizers that have no shares. Those that keep most moments come first, so that the
 * spaces of later moments are shorter. Returns the end. */
static int64_t place_optimizers(Compile *c)
{
  Graph *g = c->graph;
  int64_t at = 0;
  for (uint32_t kept = 1u << MAX_MOMENTS; kept-- > 0;)
    for (uint32_t i = 0; i < g->optimizers.n; i++) {
      const Optimizer *o = &g->optimizers.at[i];
      if (!has_shares(o) && optimizer_moments(o) == kept) at = place_optimizer(c, i, at);
    }
  return at;
}

/* Places weights in MASTER, sorted by optimizer, frozen ones last. Frozen ones have no gradients
 * and moments, so the spaces of gradients and moments are shorter and have the same offsets. Shares
 * have no masters of their own. Optimizers with shares come last, so that the shares of the last
 * one leave no gap in MASTER. */
static void place_weights(Compile *c)
{
  Graph *g = c->graph;
  g->moments = 0;
  int64_t at = place_optimizers(c), end = at;
  for (uint32_t i = 0; i < g->optimizers.n; i++) {
    if (!has_shares(&g->optimizers.at[i])) continue;
    const Optimizer *o = &g->optimizers.at[i];
    end = at;
    at = place_optimizer(c, i, at);
    for (uint32_t k = 0; k < o->groups.n && !o->groups.at[k].shared; k++)
      end += o->groups.at[k].count;
  }
  place_owned_by(c, -1, 0, end);
  find_masters(g);
}

/* Places parameters and buffers. Buffers have a space of their own, with offsets in bytes. */
static void place_params(Compile *c)
{
  Graph *g = c->graph;
  place_weights(c);
  int64_t of_buffers = 0, of_cache = 0;
  for (uint32_t i = 0; i < g->params.n; i++) {
    Parameter *p = &g->params.at[i];
    int64_t *bytes = p->decodes ? &of_cache : &of_buffers;
    if (!p->buffer) continue;
    p->offset = *bytes;
    *bytes += ampc_round_up(param_bytes(c, p), AMPC_BUFFER_ALIGN);
  }
}

/* Places the sources. The batch of every block begins at offset 0 of INPUT. The smaller last batch
 * of a block has the places of the full one. */
static void place_sources(Placement *p)
{
  Graph *g = p->c->graph;
  for (uint32_t b = 0; b < g->blocks.n; b++) {
    const BlockInfo *info = &g->blocks.at[b];
    int64_t at = 0;
    for (uint32_t i = 0; i < info->n_sources; i++) {
      ampc_source *s = &g->sources.at[info->first_source + i];
      if (info->variant_of >= 0) {
        s->offset = g->sources.at[g->blocks.at[info->variant_of].first_source + i].offset;
        continue;
      }
      int64_t n = (info->batch > 0 ? info->batch : 1) * dims_product(s->dim, s->rank);
      s->offset = at;
      at += ampc_round_up(n * ir_dtype_size(p->c, s->dtype), p->align);
    }
  }
}

static ampc_ref param_place(const Compile *c, const Node *n)
{
  const Parameter *p = &c->graph->params.at[attr_int(n, "index")];
  if (p->packing && attr_int(n, "scales"))
    return (ampc_ref){AMPC_BUFFER,
                      p->offset + ampc_packed_of(p->packing, p->dim[0], p->dim[1]).scales};
  if (p->buffer) return (ampc_ref){param_space(p), p->offset};
  ampc_space space = reads_average(c->graph, n) ? AMPC_EMA : AMPC_MASTER;
  return (ampc_ref){space, p->offset * ir_dtype_size(c, n->dtype)};
}

/* Returns the place of a leaf: an input, a parameter, a gradient slot, or a number in STATE. */
static ampc_ref leaf_place(Compile *c, const Node *n)
{
  const Graph *g = c->graph;
  switch (n->op) {
  case OP_source:
    return (ampc_ref){AMPC_INPUT, g->sources.at[attr_int(n, "index")].offset};
  case OP_param:
    return param_place(c, n);
  case OP_gradient:
    return (ampc_ref){AMPC_GRAD,
                      g->params.at[attr_int(n, "index")].offset * ir_dtype_size(c, AMPC_F32)};
  case OP_setting:
    return (ampc_ref){AMPC_STATE,
                      ampc_state_setting(g->optimizers.n, ir_metric_slots(g, g->metrics.n),
                                         (uint32_t)attr_int(n, "index"))};
  case OP_loss_scale:
    if (attr_int(n, "optimizer") < 0) return (ampc_ref){AMPC_STATE, offsetof(ampc_state, scale)};
    return (ampc_ref){AMPC_STATE, ampc_state_optimizer((uint32_t)attr_int(n, "optimizer")) +
                                      (int64_t)offsetof(ampc_optimizer, scale)};
  case OP_step:
    return (ampc_ref){AMPC_STATE, offsetof(ampc_state, step)};
  case OP_epoch:
    return (ampc_ref){AMPC_STATE, offsetof(ampc_state, epoch)};
  case OP_steps_taken:
    return (ampc_ref){AMPC_STATE, ampc_state_optimizer((uint32_t)attr_int(n, "optimizer")) +
                                      (int64_t)offsetof(ampc_optimizer, taken)};
  default:
    return (ampc_ref){AMPC_NONE, 0}; /* numbers are literals */
  }
}

/* Places leaves and working copies. A cast that is the working copy of a weight is in the space of
 * such copies, at the same element as the weight in MASTER. The parameter records the copy, so that
 * the optimizer's kernel writes it. */
static void place_leaves(Compile *c)
{
  Graph *g = c->graph;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    Node *n = &g->nodes.at[id];
    n->place = (ampc_ref){AMPC_NONE, 0};
    if (op_of(n)->tmpl == TMPL_leaf) n->place = leaf_place(c, n);
    if (!is_working_copy(g, (Value){id})) continue;
    Parameter *p = &g->params.at[attr_int(ir_node(g, n->in[0]), "index")];
    p->copies |= 1u << n->dtype;
    n->place = (ampc_ref){ampc_type_of(n->dtype)->copies, p->offset * ampc_dtype_size(n->dtype)};
  }
}

/* ---- WORK ---- */

/* True if the vendor library can add the result, in f32, to the previous content (beta = 1). */
static bool accumulates(const Node *n)
{
  bool product = op_of(n)->tmpl == TMPL_gemm || op_has(n, T_keeps_sum);
  return product && n->dtype == AMPC_F32;
}

/* dw = gemm(..); grad_accumulate(dw): the library adds the product to the slot of the gradient in
 * GRAD. So dw needs no bytes in WORK and no kernel that adds. This is possible only if no other
 * node reads dw. */
static void place_gradients(Compile *c, const uint32_t *readers)
{
  Graph *g = c->graph;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    int64_t param = ir_adds_to(n);
    if (param < 0) continue;
    Value root = value_root(g, n->in[0]);
    Node *from = ir_node(g, root);
    if (!accumulates(from) || readers[root.id] != 1) continue;
    int64_t offset = g->params.at[param].offset * ir_dtype_size(c, AMPC_F32);
    from->place = (ampc_ref){AMPC_GRAD, offset};
  }
}

/* Records that n reads v at time `at`. n NULL: the caller reads v, a result of the block. */
static void read_by(Graph *g, Life *lives, Value v, const Node *n, uint32_t at)
{
  Value root = value_root(g, v);
  const Node *from = ir_node(g, root);
  Life *life = &lives[root.id];
  if (at > life->last) life->last = at;
  if (!n || from->group != n->group || from->part != n->part) life->needed = true;
}

/* Finds the lifetimes in a block. Groups are in the order of commands: an index is a time. */
static void find_lives(Graph *g, uint16_t block, uint32_t end, Life *lives, uint32_t *readers)
{
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (n->block != block) continue;
    bool alias = op_of(n)->tmpl == TMPL_alias;
    if (n->group) lives[id].first = n->group;
    if (op_of(n)->tmpl == TMPL_own) lives[id].needed = true; /* the text of the op stores it */
    if (op_has(n, T_kept)) read_by(g, lives, n->in[0], NULL, end);
    if (alias || !n->group) continue;
    for (uint32_t i = 0; i < n->n_in; i++) {
      if (!n->in[i].id) continue;
      read_by(g, lives, n->in[i], n, n->group);
      readers[value_root(g, n->in[i]).id]++;
    }
  }
}

/* Extends the lifetimes of values that cross the border of a loop. All slices of a stack live from
 * the beginning of the loop on. A carried value lives as long as the result of the last iteration
 * is read. */
static void find_lives_of_loops(Compile *c, Life *lives)
{
  const Graph *g = c->graph;
  uint32_t *begin = arena_array(c->arena, uint32_t, g->loops.n);
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    begin[ir_begins_loop(n)] = n->group;
    if (n->op == OP_stack) lives[id].first = begin[n->loop];
    if (n->op != OP_next) continue;
    Life *carry = &lives[n->in[0].id];
    carry->needed = true;
    if (carry->last < lives[id].last) carry->last = lives[id].last;
  }
}

/* Gives all intervals of a block their offsets. Returns the bytes of WORK that it needs. */
static int64_t pack(Placement *p)
{
  Room **rooms = arena_array(p->c->arena, Room *, p->rooms.n + 1);
  for (uint32_t i = 0; i < p->rooms.n; i++) rooms[i] = &p->rooms.at[i].room;
  int64_t bytes = pack_rooms(p->c->arena, rooms, p->rooms.n);
  for (uint32_t i = 0; i < p->rooms.n; i++)
    *p->rooms.at[i].place = (ampc_ref){AMPC_WORK, p->rooms.at[i].room.best};
  return bytes;
}

static void add_room(Placement *p, ampc_ref *place, int64_t bytes, uint32_t first, uint32_t last)
{
  vec_push(p->c->arena, &p->rooms,
           ((PlacedRoom){.place = place,
                         .room = {.bytes = ampc_round_up(bytes ? bytes : 1, p->align),
                                  .first = first,
                                  .last = last,
                                  .order = p->rooms.n}}));
}

/* A value that takes the interval of a dying operand extends the life of that interval. Any other
 * value gets a new one. */
static void add_value_room(Placement *p, uint32_t id, const Life *lives, bool *taken)
{
  Node *n = ir_node(p->c->graph, (Value){id});
  uint32_t last = lives[id].last > lives[id].first ? lives[id].last : lives[id].first;
  n->over = p->c->options.optimize ? value_to_reuse(p->c, (Value){id}, lives, taken) : (Value){0};
  uint32_t over = p->room[n->over.id];
  if (!over) {
    n->over = (Value){0};
    add_room(p, &n->place, ir_room_bytes(p->c, n), lives[id].first, last);
    p->room[id] = p->rooms.n;
    return;
  }
  taken[n->over.id] = true;
  p->room[id] = over;
  Room *room = &p->rooms.at[over - 1].room;
  if (room->last < last) room->last = last;
}

/* Places the values of one block. Blocks run one after the other, so each may use all of WORK.
 * Values that no other command reads stay in registers and have no bytes. */
static void place_block(Placement *p, uint16_t block, const Life *lives)
{
  Graph *g = p->c->graph;
  bool *taken = arena_array(p->c->arena, bool, g->nodes.n);
  p->rooms.n = 0;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    Node *n = &g->nodes.at[id];
    bool has_bytes = n->group && n->block == block && n->place.space == AMPC_NONE;
    if (n->op == OP_next)
      n->over = n->in[0];
    else if (has_bytes && lives[id].needed)
      add_value_room(p, id, lives, taken);
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

/* Gives each view the place of its value. Ids ascend, so a view of a view has the first one's. */
static void place_aliases(Graph *g)
{
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    Node *n = &g->nodes.at[id];
    if (op_of(n)->tmpl == TMPL_alias || n->op == OP_turn) n->place = ir_node(g, n->in[0])->place;
  }
}

bool pass_memory(Compile *c)
{
  Graph *g = c->graph;
  Placement p = {.c = c, .align = target_of(c->options.target)->align};
  place_params(c);
  place_sources(&p);
  place_leaves(c);
  p.room = arena_array(c->arena, uint32_t, g->nodes.n);
  Life *lives = arena_array(c->arena, Life, g->nodes.n);
  uint32_t *readers = arena_array(c->arena, uint32_t, g->nodes.n);
  for (uint32_t b = 0; b < g->blocks.n; b++)
    find_lives(g, (uint16_t)b, g->groups.n, lives, readers);
  find_lives_of_loops(c, lives);
  place_gradients(c, readers);
  if (c->options.as_cuda || !is_cpu_target(c)) pitch_rows(c, lives);
  for (uint32_t b = 0; b < g->blocks.n; b++) place_block(&p, (uint16_t)b, lives);
  place_aliases(g);
  return true;
}
