/* What every program can name, as the tables know it: for --help-on and for completion. */
#pragma once
#include "compiler/base/names.h"

/* Layers, functions and operations that every program can name; copied to the arena. */
typedef struct Builtin {
  const char *name;
  const char *signature; /* "dropout(x, p: float = 0.5)"; NULL: no table knows it */
  const char *facts;     /* of an op: what autocast does with it, whether it has a gradient */
} Builtin;
typedef VEC(Builtin) Builtins;
void list_builtins(Arena *arena, Builtins *out);
