/* The operands of commands, for code that reads command lists. */
#pragma once
#include "ampc_plan.h"

enum { COMMAND_OPERANDS = 5 }; /* the most operands of a command other than a launch */

/* Returns the number of operands of a command, 0 for AMPC_REPEAT. *out is the operands, in the
 * order of the arguments of its ampc_do_ function; it points into the command or to `room`. */
uint32_t ampc_command_operands(const ampc_command *k, ampc_operand room[COMMAND_OPERANDS],
                               const ampc_operand **out);
