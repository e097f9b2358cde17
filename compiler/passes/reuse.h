/* Part of pass memory: which value may take the bytes of another. */
#pragma once
#include "compiler/command/command.h"

typedef struct Life {
  uint32_t first, last; /* commands; first is that of the writer */
  bool needed;          /* somebody outside the writer's group reads it */
} Life;

/* An input of v's kernel that has v's type and shape, is read for the last time there, and is read
 * only where v's element is then written; 0 if there is none. taken[x]: x is promised to another.
 * The input may be anywhere: whether it lies in WORK is the caller's to look. */
Value value_to_reuse(Compile *c, Value v, const Life *lives, const bool *taken);
