/* --poison: what nobody may read any more is overwritten, so that a read of it shows. */
#include "memory_use.h"

enum { POISON = 0xff }; /* NaN as f32, f64, f16 and bf16; -1 as an integer */

typedef struct Poison {
  Compile *c;
  uint32_t *last; /* value -> group of its last use */
  VEC(WorkUse) live;
  VEC(ampc_command) out;
} Poison;

/* By work_uses, not by pass memory's lifetimes: poison must not repeat a mistake of that pass. */
static void find_last_uses(Poison *p, uint32_t block)
{
  const Graph *g = p->c->graph;
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (!work_has_command(g, i, block)) continue;
    WorkUses uses = work_uses(p->c, i);
    for (uint32_t k = 0; k < uses.n; k++) p->last[uses.at[k].value.id] = i;
  }
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (op_has(n, T_kept) && n->block == block)
      p->last[value_root(g, n->in[0]).id] = g->groups.n; /* the caller */
  }
}

static void fill(Poison *p, int64_t offset, int64_t bytes)
{
  ampc_command k = {.kind = AMPC_FILL, .label = "poison"};
  k.as.fill.to.at = (ampc_ref){AMPC_WORK, offset};
  k.as.fill.value = POISON;
  k.as.fill.bytes = bytes;
  vec_push(p->c->arena, &p->out, k);
}

/* Bytes that a living value has, too (a result that took the room of an operand), are not
 * filled. */
static bool meets_live(const Poison *p, const WorkUse *use)
{
  for (uint32_t i = 0; i < p->live.n; i++)
    if (work_uses_meet(&p->live.at[i], use)) return true;
  return false;
}

/* What the command wrote lives; what it was the last to use dies. */
static void after_command(Poison *p, uint32_t group)
{
  WorkUses uses = work_uses(p->c, group);
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->live.n; i++)
    if (p->last[p->live.at[i].value.id] > group) p->live.at[n++] = p->live.at[i];
  p->live.n = n;
  for (uint32_t i = 0; i < uses.n; i++)
    if (uses.at[i].value.id && uses.at[i].written && p->last[uses.at[i].value.id] > group)
      vec_push(p->c->arena, &p->live, uses.at[i]);
  for (uint32_t i = 0; i < uses.n; i++) {
    const WorkUse *u = &uses.at[i];
    bool dies = !u->value.id || p->last[u->value.id] == group;
    if (dies && !meets_live(p, u)) fill(p, u->offset, u->bytes);
  }
}

const ampc_command *poison_commands(Compile *c, uint32_t block, const ampc_command *commands,
                                    uint32_t *n)
{
  const Graph *g = c->graph;
  Poison p = {.c = c};
  p.last = arena_array(c->arena, uint32_t, g->nodes.n);
  find_last_uses(&p, block);
  if (g->blocks.at[block].work_bytes) fill(&p, 0, g->blocks.at[block].work_bytes);
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (!work_has_command(g, i, block)) continue;
    vec_push(c->arena, &p.out, *commands++);
    after_command(&p, i);
  }
  *n = p.out.n;
  return p.out.at;
}
