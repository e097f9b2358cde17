/* Lists the operands of commands as intervals of WORK: see use.h. */
#include "use.h"

/* Collects the uses of one command. */
typedef struct UseList {
  Compile *c;
  VEC(WorkUse) uses;
} UseList;

/* Adds a use of v. Values of other spaces than WORK do not share bytes, so they need no check. */
static void add(UseList *l, Value v, ampc_ref place, int64_t bytes, bool written)
{
  if (place.space != AMPC_WORK || bytes == 0) return;
  vec_push(l->c->arena, &l->uses, (WorkUse){v, place.offset, bytes, written});
}

/* Returns the node that owns the bytes. A reader of a slice counts as a reader of all of it. */
static Value owner_of(const Graph *g, Value v)
{
  v = value_root(g, v);
  while (ir_node(g, v)->op == OP_turn) v = value_root(g, ir_node(g, v)->in[0]);
  return v;
}

/* Adds v as the library uses it: all bytes, at the place of the node that owns the bytes. */
static void add_value(UseList *l, Value v, bool written)
{
  if (!v.id) return;
  Value root = owner_of(l->c->graph, v);
  const Node *n = ir_node(l->c->graph, root);
  add(l, root, n->place, ir_room_bytes(l->c, n), written);
}

/* Adds the uses of a generated kernel. A result may take over the bytes of an operand (`over`).
 * Then one argument stands for both values. */
static void kernel_uses(UseList *l, const KernelArgs *args)
{
  for (uint32_t i = 0; i < args->n; i++) {
    const KernelArg *a = &args->at[i];
    if (!a->value.id) continue;
    add_value(l, a->over, false);
    add_value(l, a->value, a->role == ARG_out);
  }
}

/* No later command reads the scratch of a command, so it counts as written. */
WorkUses work_uses(Compile *c, uint32_t group)
{
  UseList l = {.c = c};
  const Command *k = command_of(c->graph, group);
  kernel_uses(&l, &k->whole.args);
  for (uint32_t i = 0; i < 4 && command_by_library(k); i++)
    add_value(&l, k->operands[i], i == k->result);
  add(&l, (Value){0}, c->graph->groups.at[group].workspace, k->workspace, true);
  return (WorkUses){l.uses.at, l.uses.n};
}

bool work_uses_meet(const WorkUse *a, const WorkUse *b)
{
  return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

bool work_has_command(const Graph *g, uint32_t group, uint32_t block)
{
  return ir_node(g, g->groups.at[group].nodes[0])->block == block && command_of(g, group)->kind;
}
