/* What a command reads and writes in WORK. It follows from the operands, not from the lifetimes of
 * pass memory: the check and --poison must not repeat a mistake of that pass. */
#pragma once
#include "compiler/command/command.h"

typedef struct WorkUse {
  Value value; /* the node that owns the bytes; 0: scratch of a library */
  int64_t offset, bytes;
  bool written;
} WorkUse;

typedef struct WorkUses {
  WorkUse *at;
  uint32_t n;
} WorkUses;

/* After pass memory, for a group that has a command. */
WorkUses work_uses(Compile *c, uint32_t group);
bool work_uses_meet(const WorkUse *a, const WorkUse *b); /* they share a byte */
/* Whether the group has a command in the block. */
bool work_has_command(const Graph *g, uint32_t group, uint32_t block);

/* The first mistake in the placement, as one line: a value is overwritten before its last reader,
 * read before it is written, or outside of WORK. NULL: there is none. */
const char *memory_fault(Compile *c);
/* Aborts with that line if there is a mistake. Debug builds always check, others with
 * options.check_memory. It compares each pair of values that live together, so pass memory calls it
 * once. */
void memory_check(Compile *c);

/* The commands of the block with fills between them: first all of WORK is filled, then each value
 * after its last reader. The fill is NaN in every float type. */
const ampc_command *poison_commands(Compile *c, uint32_t block, const ampc_command *commands,
                                    uint32_t *n);
