/* Part of pass memory: which value may take the bytes of another. */
#pragma once
#include "compiler/command/command.h"

typedef struct Life {
  uint32_t first, last; /* commands; first: the writer */
  bool needed;          /* a node outside of the kernel that writes it reads it */
} Life;

/* An input of v's kernel with the type and shape of v, which that kernel is the last to read, and
 * reads only at the element of v that it then writes; {0}: there is none. taken[x]: another value
 * takes the bytes of x. The input may be in any space: the caller checks that it is in WORK. */
Value value_to_reuse(Compile *c, Value v, const Life *lives, const bool *taken);
