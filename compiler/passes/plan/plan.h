/* The tables of kernels and commands that pass plan writes (plan_commands.c). */
#pragma once
#include "compiler/command/command.h"

/* Fills the table of kernels: one entry for each group that owns one, in order of groups. */
void plan_kernels(Compile *c, ampc_program *p);
/* Whether a step reads weights of the group in f32. Otherwise members exchange only their 16-bit
 * copies, and each keeps its slice of MASTER. */
bool plan_reads_masters(const Compile *c, const ParamGroup *group);
/* Returns the commands of a block of the graph in the order in which they run; *out_n: how many. */
const ampc_command *plan_commands(Compile *c, uint32_t block, uint32_t *out_n);

/* poison.c: Returns the commands of the block with fills between them: first all of WORK is filled,
 * then each value after its last reader. Each fill is NaN in every float type. */
const ampc_command *poison_commands(Compile *c, uint32_t block, const ampc_command *commands,
                                    uint32_t *n);
