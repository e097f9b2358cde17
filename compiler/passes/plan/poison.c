/* --poison: overwrites each value after its last reader, so that a later read is noticed. */
#include "plan.h"
#include "compiler/passes/memory/use.h"
#include <string.h>

enum { POISON = 0xff }; /* the byte of a fill: NaN as f32, f64, f16 and bf16, -1 as an integer */

typedef struct Poison {
  Compile *c;
  uint32_t *last; /* value -> group of its last use */
  VEC(WorkUse) live;
  uint32_t *end;  /* loop -> group of its `scan_end` */
  uint32_t group; /* the next group */
  uint32_t block;
} Poison;

typedef VEC(ampc_command) Commands;

/* Returns the group that uses v last, given that group `i` uses it. If v is from outside of a loop,
 * all iterations use it: the result is the group that ends the loop. */
static uint32_t last_use(const Poison *p, Value v, uint32_t i)
{
  const Graph *g = p->c->graph;
  const Node *n = ir_node(g, v);
  uint16_t home = ir_carries(n) ? n->loop : ir_loop_of(g, v);
  uint16_t loop = ir_node(g, g->groups.at[i].nodes[0])->loop;
  for (; v.id && loop != home; loop = g->loops.at[loop].parent) i = p->end[loop];
  return i;
}

/* Takes the uses from work_uses(), not from lifetimes, so that a mistake of pass memory shows. */
static void find_last_uses(Poison *p, uint32_t block)
{
  const Graph *g = p->c->graph;
  for (uint32_t i = 1; i < g->groups.n; i++) {
    uint16_t loop = ir_ends_loop(ir_node(g, g->groups.at[i].nodes[0]));
    if (loop) p->end[loop] = i;
  }
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (!work_has_command(g, i, block)) continue;
    WorkUses uses = work_uses(p->c, i);
    for (uint32_t k = 0; k < uses.n; k++) {
      uint32_t *last = &p->last[uses.at[k].value.id], at = last_use(p, uses.at[k].value, i);
      if (*last < at) *last = at;
    }
  }
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (op_has(n, T_kept) && n->block == block)
      p->last[value_root(g, n->in[0]).id] = g->groups.n; /* the caller reads it */
  }
}

static void fill(Poison *p, Commands *out, int64_t offset, int64_t bytes)
{
  ampc_command k = {.kind = AMPC_FILL, .label = "poison"};
  k.as.fill.to.at = (ampc_ref){AMPC_WORK, offset};
  k.as.fill.value = POISON;
  k.as.fill.bytes = bytes;
  vec_push(p->c->arena, out, k);
}

/* True if a live value has some of these bytes because it took over the bytes of an operand. */
static bool meets_live(const Poison *p, const WorkUse *use)
{
  for (uint32_t i = 0; i < p->live.n; i++)
    if (work_uses_meet(&p->live.at[i], use)) return true;
  return false;
}

/* Values that the command wrote become live. Values that it used last are filled. */
static void after_command(Poison *p, uint32_t group, Commands *out)
{
  WorkUses uses = {0};
  VEC(WorkUse) dead = {0};
  uint32_t n = 0;
  if (work_has_command(p->c->graph, group, p->block)) uses = work_uses(p->c, group);
  for (uint32_t i = 0; i < p->live.n; i++) {
    if (p->last[p->live.at[i].value.id] > group)
      p->live.at[n++] = p->live.at[i];
    else if (!uses.n)
      vec_push(p->c->arena, &dead, p->live.at[i]); /* the group ends a loop */
  }
  p->live.n = n;
  for (uint32_t i = 0; i < uses.n; i++)
    if (uses.at[i].value.id && uses.at[i].written && p->last[uses.at[i].value.id] > group)
      vec_push(p->c->arena, &p->live, uses.at[i]);
  for (uint32_t i = 0; i < uses.n; i++)
    if (!uses.at[i].value.id || p->last[uses.at[i].value.id] == group)
      vec_push(p->c->arena, &dead, uses.at[i]);
  for (uint32_t i = 0; i < dead.n; i++)
    if (!meets_live(p, &dead.at[i])) fill(p, out, dead.at[i].offset, dead.at[i].bytes);
}

/* Whether command `i` continues the group of the one before: an exchange of members is several
 * commands. A join is of no group. */
static bool continues_group(const ampc_command *all, uint32_t i)
{
  if (all[i].kind != AMPC_EXCHANGE) return false;
  if (all[i].as.exchange.desc.kind == AMPC_JOIN) return true;
  return i > 0 && strcmp(all[i].label, all[i - 1].label) == 0;
}

/* Returns the commands with fills between them. p->group moves to the group after them. */
static Commands poisoned(Poison *p, const ampc_command *commands, uint32_t n)
{
  const Graph *g = p->c->graph;
  Commands out = {0};
  for (uint32_t i = 0; i < n; i++) {
    ampc_command k = commands[i];
    if (continues_group(commands, i)) {
      vec_push(p->c->arena, &out, k);
      continue;
    }
    while (!work_has_command(g, p->group, p->block) &&
           !(k.kind == AMPC_REPEAT && command_of(g, p->group)->name == k.label))
      p->group++;
    uint32_t own = p->group++;
    if (k.kind == AMPC_REPEAT) {
      uint32_t loop = (uint32_t)attr_int(ir_node(g, g->groups.at[own].nodes[0]), "loop");
      Commands body = poisoned(p, k.as.repeat.commands, k.as.repeat.n_commands);
      k.as.repeat.commands = body.at;
      k.as.repeat.n_commands = body.n;
      own = p->end[loop];
      p->group = own + 1;
    }
    vec_push(p->c->arena, &out, k);
    after_command(p, own, &out);
  }
  return out;
}

const ampc_command *poison_commands(Compile *c, uint32_t block, const ampc_command *commands,
                                    uint32_t *n)
{
  const Graph *g = c->graph;
  Poison p = {.c = c, .group = 1, .block = block};
  p.last = arena_array(c->arena, uint32_t, g->nodes.n);
  p.end = arena_array(c->arena, uint32_t, g->loops.n);
  find_last_uses(&p, block);
  Commands first = {0};
  if (g->blocks.at[block].work_bytes) fill(&p, &first, 0, g->blocks.at[block].work_bytes);
  Commands all = poisoned(&p, commands, *n);
  for (uint32_t i = 0; i < all.n; i++) vec_push(c->arena, &first, all.at[i]);
  *n = first.n;
  return first.at;
}
