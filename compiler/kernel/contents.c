/* The table of contents of an emitted text. It lists the kernels in order, each with its layer and
 * the shape that it walks. */
#include "kernel_parts.h"
#include "runtime/plan/conv_columns.h"
#include <string.h>

enum { NAME_COLUMN = 48, OWNER_COLUMN = 38 };

/* Returns "[128, 28, 28, 32]"; for the range of an optimizer "131328 elements". The text for a
 * kernel without a shape of its own names its parts or its purpose. */
static const char *shape_text(const Kernel *k)
{
  Arena *arena = k->c->arena;
  if (k->command->columns)
    return ampc_conv_columns(&k->command->conv, k->c->options.real64).whole
               ? "without the library"
               : "columns for the product";
  if (k->group->n_parts) return kernel_parts_text(k);
  const Node *n = kernel_walked_node(k);
  int64_t range = node_range(k->g, n);
  if (range >= 0) return arena_printf(arena, "%lld elements", (long long)range);
  return ir_dims_text(k->c, n);
}

/* Returns how many commands launch the group's kernel. */
static uint32_t launches(const Graph *g, uint32_t group)
{
  uint32_t n = 1;
  for (uint32_t i = command_of(g, group)->sharer; i; i = command_of(g, i)->sharer) n++;
  return n;
}

static void put_contents_row(Printer *p, uint32_t group)
{
  Kernel k = kernel_of(p, group);
  Origin o = origin_of(p->c, group, OWNER_COLUMN);
  uint32_t n = launches(k.g, group);
  const char *times = n > 1 ? arena_printf(p->c->arena, ", %u launches", n) : "";
  const char *name = k.name;
  bool wide = strlen(name) > NAME_COLUMN;
  if (wide) EMIT(p, "//   %s\n", name);
  EMIT(p, "//   %-*s %-*s %s%s\n", NAME_COLUMN, wide ? "" : name, OWNER_COLUMN,
       o.owner ? o.owner : o.text, shape_text(&k), times);
}

static void put_block(Printer *p, uint16_t block)
{
  const BlockInfo *b = &p->c->graph->blocks.at[block];
  EMIT(p, "//\n// Kernels of %s", block_word(p->c, block));
  if (b->kind != AMPC_INFER) EMIT(p, ", batch %lld", (long long)b->batch);
  EMIT(p, ":\n");
}

void put_contents(Printer *p)
{
  const Graph *g = p->c->graph;
  int block = -1;
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (!command_owns_kernel(g, i)) continue;
    const Group *group = &g->groups.at[i];
    const Node *last = ir_node(g, group->nodes[group->n - 1]);
    if (last->block != block) put_block(p, last->block);
    block = last->block;
    put_contents_row(p, i);
  }
}
