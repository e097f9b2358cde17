/* Shared by the files of `amp inspect`: the commands of a compiled job as rows of a table. */
#pragma once
#include <jansson.h>
#include "compiler/cost/count.h"
#include "compiler/driver.h"

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
  CommandKind kind;
  const char *kernel; /* the generated kernel of the command, or the kernel that writes a
                         convolution's columns; NULL: a library computes the command */
  /* name: "fc1_relu_drop"; frame: map, move, row, the template's file, gemm, conv */
  const char *name, *frame;
  const char *main_frame;    /* frame; if it is "parts", that of the part that names the command */
  const char *library;       /* name of the library's code, "jit:avx512_core"; NULL: unknown */
  const char *nodes;         /* "%18 relu, %19 drop" */
  const char *types, *shape; /* types: "f16>f16"; shape: "[128, 512]" */
  int64_t elements;          /* elements of that shape */
  Place place;               /* the user's line of the last node; source NULL: no line */
  Geometry at;               /* grid and block of the kernel */
  int64_t times;             /* runs per step: iterations of the loops around it */
  int64_t read, written;     /* bytes of all runs; each operand counts once per run */
  int64_t flops;             /* FLOPs of all runs, see Note [flops]; -1: not counted */
  Usage usage[INSPECT_ARCHS];
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
Place inspect_place(const Inspection *in, Value v);
/* Returns the text of the line without leading blanks; "" if the place has no line. */
const char *inspect_line_text(const Inspection *in, Place place);

/* ---- ptxas.c ---- */
/* Fills in the usage of every kernel on `arch`, and stores the PTX in *ptx, which may be NULL.
 * Returns an exit status: 4, after a message, if NVRTC fails. */
int inspect_usage(Inspection *in, const char *arch, Text *ptx);

/* ---- gpu.c, gpu_print.c ---- */
typedef struct GpuRequest {
  const char *name;     /* "h200"; NULL: no --gpu */
  bool no_cudnn;        /* own kernels compute convolutions */
  const char *measured; /* a file of names and microseconds, or NULL */
} GpuRequest;
/* Prints what the commands cost on that GPU, as a table or JSON. Returns an exit status. */
int inspect_gpu(Inspection *in, const GpuRequest *request, bool json);

/* ---- library.c ---- */
/* Sets `library` of convolutions on this machine's CPU. Returns an exit status. */
int inspect_library(Inspection *in);
/* Sets `library` to cuDNN's engine for a GPU, or to the reason why own kernels compute the command.
 * Sets *note if cuDNN is missing. Returns an exit status. */
int inspect_cudnn(Inspection *in, const char **note);
/* Returns "conv", "conv by jit:avx512_core" if the library is known, or "map x 50" in a loop of 50
 * iterations. */
const char *inspect_frame_text(const Inspection *in, const CommandRow *row);

/* ---- output: each returns an exit status ---- */
int inspect_table(const Inspection *in, const char *note);  /* table.c */
int inspect_layers(const Inspection *in);                   /* layers.c */
int inspect_json(const Inspection *in);                     /* json.c */
int inspect_diff(const Inspection *a, const Inspection *b); /* diff.c */
int inspect_diff_json(const Inspection *a, const Inspection *b);
/* kernel.c: prints the text, the job's lines and the PTX of one kernel. */
int inspect_kernel(Inspection *in, const char *name);

/* Returns the index of a kernel in the program; p->n_kernels if no kernel has that name. `name` may
 * be NULL. */
uint32_t inspect_kernel_index(const ampc_program *p, const char *name);

/* Return cells of tables: "12"; in an imported file "mnist.amp:12"; "-": no line of the user's. */
const char *inspect_line_number(const Inspection *in, const CommandRow *row);
const char *inspect_nodes_text(const Inspection *in, const CommandRow *row);
const char *inspect_usage_text(Arena *arena, const Usage *u); /* "32, 1.02 kB", or "-" if unknown */
json_t *inspect_row_json(const Inspection *in, const CommandRow *row);
json_t *inspect_fires_json(const BlockInfo *b); /* list of the `every` numbers that fire */
int inspect_print_json(json_t *value);          /* takes over the reference */
