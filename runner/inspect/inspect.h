/* What the files of `amp inspect` share: the commands of a compiled job as rows of a table. */
#pragma once
#include <jansson.h>
#include "compiler/cost/count.h"
#include "compiler/driver.h"

enum { INSPECT_ARCHS = 8 };

typedef struct Usage { /* of a kernel on one architecture, as ptxas says */
  bool known;
  int registers; /* a thread */
  int shared;    /* bytes a block */
  int spilled;   /* bytes a thread, stored and loaded */
} Usage;

typedef struct CommandRow { /* a command of the plan */
  uint32_t group;           /* index into Graph.groups */
  uint16_t block;           /* index into Graph.blocks */
  CommandKind kind;
  const char *kernel;        /* the program's own: the command, or what makes the columns of a
                                convolution; NULL: the library does it all */
  const char *name, *frame;  /* "fc1_relu_drop"; map, move, row, the template's file, gemm, conv */
  const char *library;       /* what computes it here, "jit:avx512_core"; NULL: not known */
  const char *nodes;         /* "%18 relu, %19 drop" */
  const char *types, *shape; /* "f16>f16", "[128, 512]" */
  int64_t elements;          /* of that shape */
  Place place;               /* of the last node; source NULL: none that the user wrote */
  Geometry at;               /* of the kernel */
  int64_t times;             /* in a step: of the iterations of the loops around it */
  int64_t read, written;     /* bytes of tensors, each operand once; of all those times */
  int64_t flops;             /* likewise: see Note [flops]; -1: not counted */
  Usage usage[INSPECT_ARCHS];
} CommandRow;

typedef struct Inspection {
  Compile *c; /* owned; rows and their texts lie in its arena */
  VEC(CommandRow) rows;
  const char *arch[INSPECT_ARCHS]; /* those whose usage is known */
  uint32_t n_archs;
} Inspection;

/* Compiles the job of `options`. An exit status, 0 for success. */
int inspect_open(const Options *options, Inspection *out);
void inspect_close(Inspection *in);
/* "train, batch 128"; of a smaller last batch too. */
const char *inspect_block_text(const Inspection *in, uint16_t block);
Place inspect_place(const Inspection *in, Value v);
/* Text of the line, without the spaces before it; "" where there is none. */
const char *inspect_line_text(const Inspection *in, Place place);

/* ---- ptxas.c ---- */
/* Fills in the usage of every kernel on `arch`. 4 after a message when NVRTC fails. */
int inspect_usage(Inspection *in, const char *arch);

/* ---- gpu.c, gpu_print.c ---- */
typedef struct GpuRequest {
  const char *name;     /* "h200"; NULL: nothing is asked */
  bool no_cudnn;        /* convolutions by our own kernels */
  const char *measured; /* a file of names and microseconds, or NULL */
} GpuRequest;
/* What the commands cost on a GPU of that name, as a table or JSON. An exit status. */
int inspect_gpu(Inspection *in, const GpuRequest *request, bool json);

/* ---- library.c ---- */
/* Names what computes the convolutions of a job for the CPU on this machine. An exit status. */
int inspect_library(Inspection *in);
/* Names cuDNN's engines for a GPU, or why our own kernels compute a convolution; `note`: there is
 * no cuDNN. An exit status. */
int inspect_cudnn(Inspection *in, const char **note);
/* "conv"; "conv by jit:avx512_core" where that is known; "map x 50" in a loop of 50 iterations. */
const char *inspect_frame_text(const Inspection *in, const CommandRow *row);

/* ---- output: each gives an exit status ---- */
int inspect_table(const Inspection *in, const char *note);  /* table.c */
int inspect_layers(const Inspection *in);                   /* layers.c */
int inspect_json(const Inspection *in);                     /* json.c */
int inspect_diff(const Inspection *a, const Inspection *b); /* diff.c */
int inspect_diff_json(const Inspection *a, const Inspection *b);
/* Text, lines of the job and PTX of one kernel: kernel.c. */
int inspect_kernel(Inspection *in, const char *name);

/* Its place among the program's kernels; their number: it is none of them. `name` may be NULL. */
uint32_t inspect_kernel_index(const ampc_program *p, const char *name);

/* Cells of tables. "12"; of an imported file "mnist.amp:12"; "-": the user wrote no line. */
const char *inspect_line_number(const Inspection *in, const CommandRow *row);
const char *inspect_nodes_text(const Inspection *in, const CommandRow *row);
const char *inspect_usage_text(Arena *arena, const Usage *u); /* "32, 1.02 kB"; "-": not known */
json_t *inspect_row_json(const Inspection *in, const CommandRow *row);
json_t *inspect_fires_json(const BlockInfo *b); /* the numbers of `every` that fire: a list */
int inspect_print_json(json_t *value);          /* takes the reference */
