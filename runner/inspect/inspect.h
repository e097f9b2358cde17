/* Shared by the files of `amp inspect`: the commands of a compiled job as rows of a table. */
#pragma once
#include <jansson.h>
#include "compiler/cost/count.h"
#include "compiler/driver.h"
#include "compiler/facts/facts.h"

enum { INSPECT_ARCHS = 8 };

typedef struct Usage { /* resources of a kernel on one architecture, as ptxas reports them */
  bool known;
  int registers; /* per thread */
  int shared;    /* bytes per block */
  int spilled;   /* bytes per thread, stored and loaded */
} Usage;

typedef struct CommandRow { /* a command of the plan */
  uint32_t group;           /* index into Graph.groups */
  uint16_t block;           /* index into Graph.blocks */
  CommandKind is;
  Place place; /* the user's line of the last node; source NULL: no line */
  Geometry at; /* grid and block of the kernel */
  Usage usage[INSPECT_ARCHS];
  /* Bytes and FLOPs are those of all runs. `kernel`: the kernel of the command, or the one that
   * writes a convolution's columns. */
  Facts facts;
} CommandRow;

typedef struct Inspection {
  Compile *c; /* owned; its arena holds the rows and their texts */
  VEC(CommandRow) rows;
  const char *arch[INSPECT_ARCHS]; /* architectures of CommandRow.usage */
  uint32_t n_archs;
} Inspection;

/* Compiles the job of `options`. Returns an exit status, 0 for success. */
int inspect_open(const Options *options, Inspection *out);
/* Makes the rows of a job that is compiled already. The caller keeps `c`. */
void inspect_rows(Compile *c, Inspection *out);
void inspect_close(Inspection *in);
/* Returns "train, batch 128"; for a smaller last batch also ", the last of an epoch". */
const char *inspect_block_text(const Inspection *in, uint16_t block);

/* ---- ptxas.c ---- */
/* Fills in the usage of every kernel on `arch`, and stores the PTX in *ptx, which may be NULL.
 * Returns an exit status: 4, after a message, if NVRTC fails. */
int inspect_usage(Inspection *in, const char *arch, Text *ptx);

/* ---- gpu.c ---- */
typedef struct GpuRequest {
  const char *name;     /* "h200"; NULL: no --gpu */
  bool no_cudnn;        /* own kernels compute convolutions */
  const char *measured; /* a file of names and microseconds, or NULL */
} GpuRequest;
/* Predicts the facts of each row on that GPU. Returns an exit status. */
int inspect_gpu(Inspection *in, const GpuRequest *request);
/* Returns the bytes that a step must move however its kernels are fused; at most `moved`, the bytes
 * that the step does move. See Note [unavoidable bytes]. */
double gpu_unavoidable(const Inspection *in, uint16_t block, double moved); /* unavoidable.c */

/* ---- library.c ---- */
/* Sets `library` and the text of column "template". `library` NULL: unknown. */
void inspect_set_library(const Inspection *in, CommandRow *row, const char *library);
/* Sets `library` of convolutions on this machine's CPU. Returns an exit status. */
int inspect_library(Inspection *in);
/* Sets `library` to cuDNN's engine for a GPU, or to the reason why own kernels compute the command.
 * Sets *note if cuDNN is missing. Returns an exit status. */
int inspect_cudnn(Inspection *in, const char **note);

/* ---- groups: rows.c ---- */
/* How commands are summed. */
typedef enum InspectSum {
  BY_WORK,
  BY_LAYER,
  BY_LINE,
  BY_KERNEL, /* equal kernels; products with equal types and sizes */
  BY_COUNT,
  BY_NONE = BY_COUNT /* not at all */
} InspectSum;
typedef struct InspectBy {
  const char *name;    /* "layer", "work", "line", "kernel" */
  const char *columns; /* in which the commands of a group agree */
  const char *keys;    /* what JSON has of a group, beside its sums */
} InspectBy;
extern const InspectBy inspect_by[BY_COUNT];
/* Returns "fc1", "product", "16: h = relu(fc1(x))" or "fc1_linear_relu". */
const char *inspect_group_name(Arena *arena, InspectSum by, const Facts *group);
/* Appends to *out the rows of a block, or its groups. Returns the sum of all. */
Facts inspect_facts(const Inspection *in, uint16_t block, InspectSum by, FactRows *out);

/* ---- output: table.c, json.c, diff.c; each returns an exit status ---- */
typedef struct InspectView {
  InspectSum by;
  const GpuRequest *gpu; /* the GPU of the predictions, or NULL */
  const char *note;      /* a line below the tables, or NULL */
} InspectView;
int inspect_table(const Inspection *in, const InspectView *view);
int inspect_json(const Inspection *in, const InspectView *view);
int inspect_diff(const Inspection *a, const Inspection *b);
int inspect_diff_json(const Inspection *a, const Inspection *b);
/* kernel.c: prints the text, the job's lines and the PTX of one kernel. */
int inspect_kernel(Inspection *in, const char *name);

/* Returns the index of a kernel in the program; p->n_kernels if no kernel has that name. `name` may
 * be NULL. */
uint32_t inspect_kernel_index(const ampc_program *p, const char *name);

const char *inspect_usage_text(Arena *arena, const Usage *u); /* "32, 1.02 kB", or "-" if unknown */
json_t *inspect_row_json(const Inspection *in, const CommandRow *row);
/* Returns a list of groups: what they have in common, and of their sums `keys`. */
json_t *inspect_groups_json(InspectSum by, const FactRows *groups, const char *keys);
/* Returns an object with name, batch, remainder (a smaller last batch) and the `every` numbers that
 * fire. */
json_t *inspect_block_json(const Inspection *in, uint16_t block);
int inspect_print_json(json_t *value); /* takes over the reference */
