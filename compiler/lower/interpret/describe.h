/* The built-in names with the facts in the tables about them, for --help-on and for completion; and
 * what the names of a job mean, for `amp lsp`. */
#pragma once
#include "compiler/base/names.h"
#include "compiler/diag/diag.h"

/* A layer, function or operation that every program can use. Its texts are copies in the arena. */
typedef struct Builtin {
  const char *name;
  const char *signature; /* "dropout(x, p: float = 0.5)"; NULL: no table has it */
  const char *facts;     /* for an op: its autocast category, and whether it has a gradient */
} Builtin;
typedef VEC(Builtin) Builtins;
void list_builtins(Arena *arena, Builtins *out);

/* A value that a name has, after a compile with options.keep_meanings and dump_after "precision".
 * Texts are in the compile's arena. */
typedef struct Described {
  const char *text;  /* "int 3", "bf16[16, 1024, 768]", "a module Linear" */
  const char *why;   /* of a tensor: why it has this type; "" if that is not known */
  const char *layer; /* of a tensor: the module that computes it, "net.fc1"; else NULL */
  bool tensor;
  bool result;    /* the name is called, and this is the value of the call */
  uint32_t count; /* how often there is a value with this text */
} Described;
typedef VEC(Described) DescribedVec;
/* Lists the different values of the name at `span`, in the order of the elaboration. After errors,
 * float tensors have no type yet: "float[32, 10]". */
void meanings_at(Compile *c, Span span, DescribedVec *out);
