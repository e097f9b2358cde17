/* Part of pass fuse: turns sets of nodes into groups, numbered in the order of their commands. */
#include "fuse.h"

static void add_group(Fuse *f, const Members *m, uint32_t *numbers, uint32_t set)
{
  Group out = share_group(f, m);
  for (uint32_t i = 0; i < out.n; i++) ir_node(f->g, out.nodes[i])->group = f->g->groups.n;
  numbers[set] = f->g->groups.n;
  vec_push(f->c->arena, &f->g->groups, out);
}

/* Returns the node of each set that decides its number: the first node. For a launch with several
 * parts, the part whose first node comes last decides, since the sets that this part waits for have
 * earlier numbers. */
static uint32_t *last_begun(const Fuse *f)
{
  uint32_t *last = arena_array(f->c->arena, uint32_t, f->sets.n);
  bool *begun = arena_array(f->c->arena, bool, f->sets.n);
  for (uint32_t id = 1; id < f->g->nodes.n; id++) {
    if (!f->group[id] || begun[f->part[id]]) continue;
    begun[f->part[id]] = true;
    last[f->group[id]] = id;
  }
  return last;
}

static void order_set(Fuse *f, uint32_t set, uint32_t *numbers);

/* Numbers the sets of a loop one after the other. `scan`, which begins the loop, waits for all sets
 * outside of the loop that sets of the loop wait for. */
static void order_loop(Fuse *f, uint16_t loop, uint32_t *numbers)
{
  uint32_t end = 0;
  for (uint32_t id = 1; id < f->g->nodes.n; id++) {
    const Node *n = node_at(f, id);
    if (ir_ends_loop(n) == loop) end = f->group[id];
    if (f->group[id] && ir_loop_within(f->g, n->loop, loop)) order_set(f, f->group[id], numbers);
  }
  add_group(f, &f->sets.at[end], numbers, end);
}

/* Returns `set`, or the set that begins the outermost unnumbered loop around it. */
static uint32_t first_to_begin(const Fuse *f, uint32_t set, const uint32_t *numbers)
{
  const Node *n = node_at(f, f->sets.at[set].nodes.at[0]);
  uint16_t loop = ir_ends_loop(n) ? ir_ends_loop(n) : n->loop;
  uint32_t first = set;
  for (; loop; loop = f->g->loops.at[loop].parent)
    if (!numbers[f->begin[loop]]) first = f->begin[loop];
  return first;
}

/* Numbers the set after all sets that it waits for: group numbers are the order of commands. */
static void order_set(Fuse *f, uint32_t set, uint32_t *numbers)
{
  if (!set || numbers[set]) return;
  set = first_to_begin(f, set, numbers);
  const Members *m = &f->sets.at[set];
  if (ir_ends_loop(node_at(f, m->nodes.at[0]))) return; /* order_loop() adds it */
  for (uint32_t i = 0; i < m->nodes.n; i++)
    for (Wait w = {0}; fuse_next_wait(f, m->nodes.at[i], &w);)
      if (w.set != set) order_set(f, w.set, numbers);
  add_group(f, m, numbers, set);
  uint16_t loop = ir_begins_loop(node_at(f, m->nodes.at[0]));
  if (loop) order_loop(f, loop, numbers);
}

void make_groups(Fuse *f)
{
  Graph *g = f->g;
  uint32_t *numbers = arena_array(f->c->arena, uint32_t, f->sets.n);
  f->begin = arena_array(f->c->arena, uint32_t, g->loops.n);
  for (uint32_t id = 1; id < g->nodes.n; id++)
    f->begin[ir_begins_loop(node_at(f, id))] = f->group[id];
  g->groups.n = 0;
  vec_push(f->c->arena, &g->groups, (Group){0});
  uint32_t *last = last_begun(f);
  for (uint32_t id = 1; id < g->nodes.n; id++)
    if (last[f->group[id]] == id) order_set(f, f->group[id], numbers);
}
