/* Counts bytes and FLOPs of a command and of each of its nodes. Valid after pass kernels. */
#pragma once
#include "compiler/command/command.h"

typedef struct CommandCount {
  CommandKind kind;
  int64_t times;         /* launches in a step: iterations of the loops around it */
  int64_t read, written; /* bytes of tensors, each operand once; summed over all launches */
  int64_t flops;         /* summed over all launches: Note [flops]; -1: not counted */
} CommandCount;

/* The counts of a node. Those of a command are the sums over its nodes. */
typedef struct NodeCount {
  int64_t read, written, flops;
} NodeCount;

/* Returns the FLOPs of a node; 0 for ops whose text is a template file. */
int64_t node_flops(const Graph *g, Value v);
/* Counts a command and, if `nodes` is not NULL, adds the counts of its nodes to nodes[id]. An
 * operand counts for the first node that reads it. A node whose arithmetic is not counted adds no
 * FLOPs. */
CommandCount command_count(Compile *c, uint32_t group, NodeCount *nodes);
/* Returns the bytes that a part of a launch reads and writes. */
int64_t part_bytes(Compile *c, const KernelPart *part);
