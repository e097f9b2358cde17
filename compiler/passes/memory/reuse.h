/* Part of pass memory: finds a value whose bytes another value may take. */
#pragma once
#include "compiler/command/command.h"

typedef struct Life {
  uint32_t first, last; /* commands; first: the writer; last: the last reader */
  bool needed;          /* a node outside of the kernel that writes it reads it */
} Life;

/* Returns an input of v's kernel whose bytes v may take, or {0}. The input has the type and shape
 * of v. That kernel is its last reader and reads it only at the element of v that it then writes.
 * taken[x]: another value takes the bytes of x. The caller checks that it is in WORK. */
Value value_to_reuse(Compile *c, Value v, const Life *lives, const bool *taken);
