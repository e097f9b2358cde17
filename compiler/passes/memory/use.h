/* Lists what a command reads and writes in WORK. The list follows from the operands, not from the
 * lifetimes of pass memory: the check and --poison must not repeat a mistake of that pass. */
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

/* Returns the uses of a group that has a command. Needs the commands. */
WorkUses work_uses(Compile *c, uint32_t group);
bool work_uses_meet(const WorkUse *a, const WorkUse *b); /* returns true if they share a byte */
/* True if the group has a command in the block. */
bool work_has_command(const Graph *g, uint32_t group, uint32_t block);

/* Returns the first mistake in the placement, as one line: a value is overwritten before its last
 * reader, read before it is written, or outside of WORK. Returns NULL if there is no mistake. */
const char *memory_fault(Compile *c);
/* If memory_fault() finds a mistake, prints it and aborts. Debug builds always check, other builds
 * only with options.check_memory. The check compares each pair of values that live together, so
 * it runs once, in pass commands. */
void memory_check(Compile *c);
