/* The operands of commands, for code that reads command lists. */
#pragma once
#include "ampc_plan.h"

enum { COMMAND_OPERANDS = 5 }; /* the most operands of a command other than a launch */

/* The operands of a command, in the order of the arguments of its ampc_do_ function; none for
 * AMPC_REPEAT. *out points into the command or to `room`. */
uint32_t ampc_command_operands(const ampc_command *k, ampc_operand room[COMMAND_OPERANDS],
                               const ampc_operand **out);
