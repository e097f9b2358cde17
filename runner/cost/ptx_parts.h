/* What ptx_read.c and ptx_op.c share. */
#pragma once
#include "ptx.h"

enum { PTX_CONST_BASE = 1 << 20 /* addresses of variables that are not in shared memory */ };

PtxType ptx_type_named(const char *name); /* PTX_none: no type */
/* Sets op, types and modifiers from i->name. NULL, or what is wrong with it. */
const char *ptx_instruction(PtxInstruction *i);
/* Once its operands are known. False: ptx.def has no row for it and its type. */
bool ptx_cost(PtxInstruction *i);
