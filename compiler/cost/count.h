/* What a command and each of its nodes move and compute. Valid after pass kernels. */
#pragma once
#include "compiler/command/command.h"

typedef enum CommandKind { COMMAND_kernel, COMMAND_gemm, COMMAND_conv } CommandKind;

typedef struct CommandCount {
  CommandKind kind;      /* ampc's own kernel, or a library's product or convolution */
  int64_t times;         /* launches in a step: iterations of the loops around it */
  int64_t read, written; /* bytes of tensors, each operand once; sum over all launches */
  int64_t flops;         /* sum over all launches: Note [flops]; -1: not counted */
} CommandCount;

typedef struct NodeCount { /* the share of a node; the sum over its nodes is the command's */
  int64_t read, written, flops;
} NodeCount;

/* 0 for ops whose text is a template file. */
int64_t node_flops(const Graph *g, Value v);
/* Adds to nodes[id] for each node of the command, if `nodes` is not NULL. An operand counts for the
 * first node that reads it. A node whose arithmetic is not counted adds none. */
CommandCount command_count(Compile *c, uint32_t group, NodeCount *nodes);
/* The bytes of one of ampc's own kernels, or of one part of a launch. */
int64_t kernel_bytes(Compile *c, const Group *group);
