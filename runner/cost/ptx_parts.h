/* Functions that ptx_read.c and ptx_op.c share. */
#pragma once
#include "ptx.h"

enum { PTX_CONST_BASE = 1 << 20 /* first address of variables outside shared memory */ };

PtxType ptx_type_named(const char *name); /* PTX_none: no type */
/* Sets op, types and modifiers from i->name. Returns NULL, or what is wrong with the name. */
const char *ptx_instruction(PtxInstruction *i);
/* Sets the costs; call it after the operands are parsed. False: ptx.def has no PTX_OP for the op
 * and its type. */
bool ptx_cost(PtxInstruction *i);
