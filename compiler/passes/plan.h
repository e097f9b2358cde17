/* The tables of kernels and commands that pass plan writes (plan_commands.c). */
#pragma once
#include "compiler/command/command.h"

/* Fills the table of kernels: one entry for each group that owns one, in order of groups. */
void plan_kernels(Compile *c, ampc_program *p);
/* Returns the commands of a block of the graph in the order in which they run; *out_n: how many. */
/* Whether a step reads weights of the group in f32. Otherwise members exchange only their 16-bit
 * copies, and each keeps its slice of MASTER. */
bool plan_reads_masters(const Compile *c, const ParamGroup *group);
const ampc_command *plan_commands(Compile *c, uint32_t block, uint32_t *out_n);
