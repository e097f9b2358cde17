/* What a command moves and computes, and which of its nodes does so. After pass kernels. */
#pragma once
#include "compiler/command/command.h"

typedef enum CommandKind { COMMAND_kernel, COMMAND_gemm, COMMAND_conv } CommandKind;

typedef struct CommandCount {
  CommandKind kind;      /* a kernel of ours; the others a library's */
  int64_t times;         /* in a step: of the iterations of the loops around it */
  int64_t read, written; /* bytes of tensors, each operand once; of all those times */
  int64_t flops;         /* likewise: see Note [flops]; -1: not counted */
} CommandCount;

typedef struct NodeCount { /* what a node has of its command; sums are those of the command */
  int64_t read, written, flops;
} NodeCount;

/* 0 of ops whose text is a template file. */
int64_t node_flops(const Graph *g, Value v);
/* `nodes`: by the id of a node, which is added to; or NULL. An operand counts for the first node
 * that reads it. Nodes whose arithmetic is not counted add none. */
CommandCount command_count(Compile *c, uint32_t group, NodeCount *nodes);
/* Bytes of one kernel of ours, or of one part of a launch. */
int64_t kernel_bytes(Compile *c, const Group *group);
