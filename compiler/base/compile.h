/* The state of one compile: all data that passes read and write. There are no globals. */
#pragma once
#include <sys/types.h>
#include "arena.h"
#include "names.h"
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

/* The help that a message about an unknown name prints. */
typedef struct NameHint {
  const char *name, *text;
} NameHint;

/* The text of a file that an editor has open. It replaces the file's content on disk. */
typedef struct OpenText {
  const char *path, *text;
  uint32_t size; /* bytes */
} OpenText;

typedef struct Options {
  const char *input;    /* path of the job; messages show it as given */
  const char *data_dir; /* root of data paths; NULL: the folder of the job */
  const char **include_dirs;
  Assignment *consts, *settings;
  Assignment *dims; /* "S", "64,512": sizes that infer blocks are compiled for; else the largest */
  const char *precision; /* a declaration that replaces that of the job, for `amp tune`; or NULL */
  uint32_t n_include_dirs, n_consts, n_settings, n_dims;
  const char *infer_block;   /* compile only this infer block; NULL: all blocks */
  const char **infer_inputs; /* calls that read the block's arguments, such as `npy("x.npy")` */
  uint32_t n_infer_inputs;   /* 0: the caller of the block writes the arguments */
  const char *columns;  /* as ampc_program.columns: the classes that the weights know; or NULL */
  const OpenText *open; /* n_open files that are not read from disk */
  uint32_t n_open;
  /* If text_to is not 0: the infer block reads a text that grows from text_from to text_to tokens,
   * its second dim (lower/block/dim.c). */
  int64_t text_from, text_to;
  bool decode;          /* with text_to: pass decode makes programs that compute a few tokens */
  int64_t decode_new;   /* not 0: one program instead, for so many new tokens, with their logits */
  const char *target;   /* "cpu" or "sm_80"; default "sm_80" */
  int march;            /* 1 + index in target_marches; 0: not given */
  int optimize;         /* 0, 1, 2: how much is fused; all results have the same bits */
  bool whole_weights;   /* quantized weights are f32: for files with the values that were loaded */
  bool real64;          /* for tests: f32 is double everywhere, Note [real64] in ir.h */
  bool as_cuda;         /* for tests: a CPU gets the graph of a GPU, with gaps in rows (Note [pitch]
                           in pitch.c) and attention whose gradients are rounded */
  bool no_onednn;       /* on a CPU, loops of ampc compute products and convolutions */
  bool strict_rounding; /* round 16-bit weight gradients before they are summed, as PyTorch does */
  /* In every n-th step, measure how large all values are (pass probe); 0: never. */
  uint32_t probe_every;
  bool norms;           /* steps also sum norms of gradients, weights and updates, for logs */
  bool poison;          /* overwrite values with NaN after their last use */
  uint32_t ranks;       /* processes that train together; 0 counts as 1 */
  int64_t memory_limit; /* bytes that the job may use; 0: no limit */
  bool check_memory;    /* release builds also check that no two live values overlap */
  /* A value that train and eval blocks also output, except for a smaller last batch
   * (lower/block/watch_end.c); or NULL. */
  const char *watch;
  const NameHint *hints; /* for names that only `amp repl` knows */
  uint32_t n_hints;
  const char *dump_after; /* stop after this pass, so that c->graph can be printed; or NULL */
  uint32_t error_limit;   /* default 20 */
  bool color, json_errors, werror;
  bool silent;              /* count messages, but print none */
  bool quiet;               /* the verb was given -q: nothing is said while kernels are compiled */
  bool for_many_jobs;       /* -D and --set may name what this job does not declare */
  bool keep_messages;       /* for diag_kept(), instead of printing them */
  bool keep_meanings;       /* for meanings_at() of lower/interpret/describe.h */
  TableView view;           /* options for printing tables */
  const char **no_warnings; /* -Wno-NAME */
  uint32_t n_no_warnings;
} Options;

/* An imported file. A file that is imported several times has one entry. */
typedef struct Import {
  const char *path; /* the path at which the file was found */
  dev_t device;     /* device and inode identify the file */
  ino_t inode;
  Ast *ast;
} Import;

struct Compile {
  Arena *arena;
  Options options;
  DiagState *diag;
  VEC(Source) sources;
  uint32_t tokens;       /* number of tokens in all files so far, except the compiler's own */
  Ast *ast;              /* the job; imports and the layer library have trees of their own */
  VEC(Import *) imports; /* syntax/source.c */
  bool cannot_read;      /* a source file is missing or unreadable: exit status 3 */
  Graph *graph;          /* set from pass lower on */
  Graph *twin;           /* the same job with the whole batch: Note [samples]; or NULL */
  /* a DECL_body's type and value, "int 3", if known at compile time; else NULL */
  const char *answer;
  /* For a DECL_body that reads data: its runner writes a batch to INPUT that starts here. */
  int64_t first_sample;
  const char *answer_layer;  /* the answer is this layer, "net.fc1"; else NULL */
  NameVec settings;          /* keys that --set can name; set by pass lower */
  struct Meanings *meanings; /* lower/meaning.h: what names meant; or NULL */
  void *blame; /* kernel/printer.c: the code that printed each line of the last text */
  struct KernelFacts *facts; /* kernel/facts.c: storage that all kernels reuse */
  ampc_program *program;     /* set from pass plan on: program/ prints it, the runtime runs it */
};
