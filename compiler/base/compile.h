/* The state of one compile. Everything a pass may read or write hangs here; there are no globals.
 */
#pragma once
#include <sys/types.h>
#include "arena.h"
#include "table.h"

typedef struct Compile Compile;
typedef struct Ast Ast;                   /* syntax/ast.h */
typedef struct DiagState DiagState;       /* diag/diag_internal.h */
typedef struct Source Source;             /* diag/diag.h */
typedef struct Graph Graph;               /* graph/ir.h */
typedef struct ampc_program ampc_program; /* runtime/plan/ampc_plan.h */

typedef struct Assignment { /* -D NAME=VALUE, --set object.key=value, --dim N=64 */
  const char *key, *value;
} Assignment;

typedef struct NameHint { /* the help for a name that is unknown */
  const char *name, *text;
} NameHint;

typedef struct Options {
  const char *input;    /* path of the job; messages show it as given */
  const char *data_dir; /* root of data paths; NULL: the folder of the job */
  const char **include_dirs;
  Assignment *consts, *settings;
  Assignment *dims; /* "S", "64,512": sizes that infer blocks are compiled for; else the greatest */
  uint32_t n_include_dirs, n_consts, n_settings, n_dims;
  const char *infer_block;    /* of all blocks this infer block alone is compiled; or NULL */
  const char **infer_inputs;  /* calls that give its arguments: `npy("x.npy")`; one may give all */
  uint32_t n_infer_inputs;    /* 0: who calls it writes them */
  int64_t text_from, text_to; /* it reads a text that grows from so many tokens to so many, and its
                                 second size is their number (lower/block/dim.c); 0: it does not */
  const char *target;         /* "cpu" or "sm_80"; default "sm_80" */
  int optimize;               /* 0, 1, 2: fusion only; never a bit of the result */
  bool real64;                /* tests: f32 is double everywhere, see Note [real64] in ir.h */
  bool strict_rounding;  /* 16-bit weight gradients round as in PyTorch before they are summed */
  uint32_t probe_every;  /* steps whose number it divides tell how large all values are: pass probe;
                            0: none */
  bool poison;           /* what nobody may read any more is overwritten with NaN */
  int64_t memory_limit;  /* bytes that the job may need; 0: no limit */
  bool check_memory;     /* no two live values overlap: checked in release builds too */
  const char *watch;     /* train and eval blocks give this value as an output, but for a
                               smaller last batch (lower/block/watch_end.c); or NULL */
  const NameHint *hints; /* for names that only a prompt knows of */
  uint32_t n_hints;
  const char *dump_after; /* the passes end after this one; c->graph is to be printed; or NULL */
  uint32_t error_limit;   /* 20 */
  bool color, json_errors, werror;
  bool silent;              /* messages are counted, not shown */
  TableView view;           /* of tables for people */
  const char **no_warnings; /* -Wno-NAME */
  uint32_t n_no_warnings;
} Options;

typedef struct Import { /* a file that was imported, once however often */
  const char *path;     /* where it was found */
  dev_t device;         /* which file that is */
  ino_t inode;
  Ast *ast;
} Import;

struct Compile {
  Arena *arena;
  Options options;
  DiagState *diag;
  VEC(Source) sources;
  uint32_t tokens;       /* of all files but the compiler's own, so far */
  Ast *ast;              /* of the job; imports and the layer library have their own */
  VEC(Import *) imports; /* syntax/source.c */
  bool cannot_read;      /* a source file is missing or unreadable: exit status 3 */
  Graph *graph;          /* from pass lower on */
  const char *answer; /* of a DECL_body whose value is known at compile time: "int 3"; else NULL */
  int64_t first_sample; /* of a DECL_body that reads data: whoever runs it writes the samples of its
                           block's batch from this one on to INPUT */
  void *blame;          /* emit/printer.c: the lines of the last text and who wrote them */
  struct KernelFacts *facts; /* emit/kernel_facts.c: its room, one for all kernels */
  ampc_program *program;     /* from pass plan on: what emit/ prints and the runtime walks */
};
