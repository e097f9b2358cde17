/* Simulates the commands of each block and records which value owns which bytes. With the places
 * that pass memory chose, every reader must find the value that was written for it. */
#include "use.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct Owner { /* a value that has been written */
  WorkUse use;
  uint32_t spoiled_by; /* the group that overwrote some of its bytes; 0: no group */
} Owner;

typedef struct Account {
  Compile *c;
  uint32_t block;
  VEC(Owner) owners;
  const char *fault;
} Account;

static const char *value_text(Compile *c, Value v)
{
  if (!v.id) return "scratch";
  const Node *n = ir_node(c->graph, v);
  return arena_printf(c->arena, "%%%u (%s %s)", v.id, op_of(n)->name, ir_type_text(c, n));
}

/* Returns the latest write of v in this block; NULL if no command has written v. */
static Owner *find(Account *a, Value v)
{
  for (uint32_t i = a->owners.n; i-- > 0;)
    if (a->owners.at[i].use.value.id == v.id) return &a->owners.at[i];
  return NULL;
}

/* Reports a mistake unless the bytes of v have been written and not been overwritten since. */
static void check_read(Account *a, Value v, const char *reader)
{
  const Owner *o = find(a, v);
  if (!o) {
    a->fault = arena_printf(a->c->arena, "%s reads %s, which nothing has written", reader,
                            value_text(a->c, v));
  } else if (o->spoiled_by) {
    a->fault = arena_printf(a->c->arena, "%s reads %s, of which %s has overwritten bytes", reader,
                            value_text(a->c, v), command_of(a->c->graph, o->spoiled_by)->name);
  }
}

/* True if pass memory allowed v to overwrite x while its kernel runs (reuse.c). */
static bool takes_bytes_of(const Account *a, Value v, Value x)
{
  return v.id && ir_node(a->c->graph, v)->over.id == x.id;
}

/* True if v is x for the next iteration. Both may have the place of a carried value that a swap of
 * two carried values ends: the kernel writes the same number twice. */
static bool continues(const Account *a, Value v, Value x)
{
  const Node *n = ir_node(a->c->graph, v);
  return v.id && n->op == OP_next && n->in[1].id == x.id;
}

/* Checks a single command. The blocks of a kernel run in any order, so the bytes that one writes
 * must not be read or written by another. */
static void check_command(Account *a, uint32_t group, const WorkUses *uses)
{
  int64_t work = a->c->graph->blocks.at[a->block].work_bytes;
  for (uint32_t i = 0; i < uses->n && !a->fault; i++) {
    const WorkUse *u = &uses->at[i];
    if (u->offset < 0 || u->offset + u->bytes > work)
      a->fault = arena_printf(a->c->arena, "%s: %s lies outside the block's %lld bytes of work",
                              command_of(a->c->graph, group)->name, value_text(a->c, u->value),
                              (long long)work);
    for (uint32_t k = 0; k < i && !a->fault; k++) {
      const WorkUse *other = &uses->at[k];
      if (!(u->written || other->written) || !work_uses_meet(u, other)) continue;
      if (takes_bytes_of(a, u->value, other->value)) continue;
      if (continues(a, u->value, other->value)) continue;
      a->fault = arena_printf(a->c->arena, "%s: its operands %s and %s overlap",
                              command_of(a->c->graph, group)->name, value_text(a->c, other->value),
                              value_text(a->c, u->value));
    }
  }
}

/* Notes a write: it spoils all values that share a byte with it, and makes its own value whole. */
static void note_write(Account *a, uint32_t group, const WorkUse *use)
{
  for (uint32_t i = 0; i < a->owners.n; i++)
    if (work_uses_meet(&a->owners.at[i].use, use)) a->owners.at[i].spoiled_by = group;
  if (use->value.id) vec_push(a->c->arena, &a->owners, (Owner){*use, 0});
  const Node *n = ir_node(a->c->graph, use->value);
  Owner *carry = n->op == OP_next ? find(a, n->in[0]) : NULL;
  if (carry) carry->spoiled_by = 0; /* the next iteration reads the carried value there */
}

/* Checks reads before it notes writes: a command may read what it then overwrites. */
static void check_group(Account *a, uint32_t group)
{
  WorkUses uses = work_uses(a->c, group);
  check_command(a, group, &uses);
  for (uint32_t i = 0; i < uses.n && !a->fault; i++)
    if (!uses.at[i].written) check_read(a, uses.at[i].value, command_of(a->c->graph, group)->name);
  for (uint32_t i = 0; i < uses.n; i++)
    if (uses.at[i].written) note_write(a, group, &uses.at[i]);
}

/* Checks the results, which the caller reads when the block has ended. */
static void check_outputs(Account *a)
{
  const Graph *g = a->c->graph;
  for (uint32_t id = 1; id < g->nodes.n && !a->fault; id++) {
    const Node *n = &g->nodes.at[id];
    if (!op_has(n, T_kept) || n->block != a->block) continue;
    Value root = value_root(g, n->in[0]);
    if (ir_node(g, root)->place.space == AMPC_WORK) check_read(a, root, "the caller");
  }
}

/* Returns the group to check after group `i`. Each loop is run twice, so that the second iteration
 * reads what the first one has spoiled. */
static uint32_t following(const Graph *g, uint32_t i, uint32_t *again)
{
  const Node *n = ir_node(g, g->groups.at[i].nodes[0]);
  uint16_t end = ir_ends_loop(n);
  uint32_t back = end ? again[end] : 0;
  again[ir_begins_loop(n)] = i + 1;
  if (back) again[end] = 0;
  return back ? back : i + 1;
}

const char *memory_fault(Compile *c)
{
  const Graph *g = c->graph;
  Account a = {.c = c};
  uint32_t *again = arena_array(c->arena, uint32_t, g->loops.n);
  for (a.block = 0; a.block < g->blocks.n && !a.fault; a.block++) {
    a.owners.n = 0;
    for (uint32_t i = 1; i < g->groups.n && !a.fault; i = following(g, i, again))
      if (work_has_command(g, i, a.block)) check_group(&a, i);
    if (!a.fault) check_outputs(&a);
    if (a.fault) break;
  }
  return a.fault;
}

/* The check's time is quadratic in the number of live values: only on request in release builds. */
void memory_check(Compile *c)
{
#ifdef NDEBUG
  if (!c->options.check_memory) return;
#endif
  const char *fault = memory_fault(c);
  if (!fault) return;
  fprintf(stderr, "ampc: bug in pass memory: %s\n", fault);
  abort();
}
