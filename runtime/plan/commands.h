/* What all who read command lists need to know of a command. */
#pragma once
#include "ampc_plan.h"

enum { COMMAND_OPERANDS = 5 }; /* the most of a command that is no launch */

/* The operands of a command, in the order in which its ampc_do_ function takes them; none of
 * AMPC_REPEAT. *out points into the command or to `room`. */
uint32_t ampc_command_operands(const ampc_command *k, ampc_operand room[COMMAND_OPERANDS],
                               const ampc_operand **out);
