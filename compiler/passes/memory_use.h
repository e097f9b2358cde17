/* What a command reads and writes of WORK, found from its operands and not from the lifetimes that
 * pass memory worked with: the verifier and --poison must not repeat its mistakes. */
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

/* After pass memory. The group has a command. */
WorkUses work_uses(Compile *c, uint32_t group);
bool work_uses_meet(const WorkUse *a, const WorkUse *b); /* they have a byte in common */
/* Whether the group has a command in the block. */
bool work_has_command(const Graph *g, uint32_t group, uint32_t block);

/* The first mistake in where values lie, as one line: a value is overwritten before its last
 * reader, read before it is written, or lies outside WORK; NULL when there is none. */
const char *memory_fault(Compile *c);
/* Aborts with that line, always in builds for debugging, else with options.check_memory. It looks
 * at every pair of values that live together, so pass memory calls it once. */
void memory_check(Compile *c);

/* The block's commands with fills between them: all of WORK at the start, then what nobody reads
 * any more, with bytes that are NaN in every float type. */
const ampc_command *poison_commands(Compile *c, uint32_t block, const ampc_command *commands,
                                    uint32_t *n);
