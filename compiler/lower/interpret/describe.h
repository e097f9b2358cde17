/* The built-in names with the facts in the tables about them, for --help-on and for completion. */
#pragma once
#include "compiler/base/names.h"

/* A layer, function or operation that every program can use. Its texts are copies in the arena. */
typedef struct Builtin {
  const char *name;
  const char *signature; /* "dropout(x, p: float = 0.5)"; NULL: no table has it */
  const char *facts;     /* for an op: its autocast category, and whether it has a gradient */
} Builtin;
typedef VEC(Builtin) Builtins;
void list_builtins(Arena *arena, Builtins *out);
