/* What the files of `amp infer` share. */
#pragma once
#include <stdio.h>
#include "ampc_rt.h"
#include "compiler/driver.h"

typedef struct InferInput { /* --input [NAME=]FILE */
  const char *name, *file;  /* name NULL: the only argument */
} InferInput;

typedef struct InferOutput { /* --output and --png [NAME=]FILE */
  const char *name, *file;   /* name NULL: the only result */
  bool png;
} InferOutput;

typedef struct PromptText { /* what --generate goes on with */
  int64_t *at, n;
  bool numbers; /* tokens of a file, not bytes */
} PromptText;

typedef struct InferCommand {
  Options compile;
  ampc_train_options train; /* device, seed, data_dir */
  const char *block, *data, *weights, *classes, *names;
  InferInput *inputs;
  InferOutput *outputs;
  uint32_t n_inputs, n_outputs;
  uint32_t top;     /* 0: not asked for */
  uint32_t columns; /* of a grid of pictures; 0: the default */
  bool ranged;      /* numbers from `low`, black, to `high`, white; else from 0 to 1 */
  double low, high;
  uint32_t generate, top_k; /* 0: likewise */
  const char *prompt, *prompt_file;
  double temperature;
  bool has_temperature;
  PromptText text;
  bool quiet, verbose;
} InferCommand;

/* ---- input.c ---- */
/* The infer block of that name in c->ast; NULL as a name: the only one. NULL: ampc_last_error(). */
const Function *infer_choose_block(Compile *c, const char *wanted);
/* The calls that give the arguments of the block, into c->options. False: ampc_last_error(). */
bool infer_choose_inputs(Compile *c, const InferCommand *cmd, const Function *block);

/* ---- infer.c ---- */
/* [NAME=]FILE. A name has no / in it, so a path with = behind one has none; *name is then NULL. */
void infer_split(Arena *arena, const char *value, const char **name, const char **file);
/* Runs block 0, which has its arguments as data, over all of them. */
ampc_status infer_run(ampc_runtime *rt, const InferCommand *cmd);

/* ---- write.c: where results go ---- */
typedef struct InferWriter InferWriter;
/* Of block 0 of the program, whose arguments are `data`, NULL where it has none; `batches` is how
 * many there are, each of the block's batch but the last. */
ampc_status infer_write_begin(ampc_runtime *rt, const InferCommand *cmd, const ampc_batches *data,
                              int64_t batches, InferWriter **out);
/* The results of a batch: `samples` of its rows. */
ampc_status infer_write_batch(InferWriter *w, int64_t samples);
/* All is written, or, where `status` is a failure, nothing of the last files is left. */
ampc_status infer_write_end(InferWriter *w, ampc_status status);

/* ---- pictures.c: results as PNG ---- */
typedef struct Pictures Pictures;
/* Of a result [N, 1, height, width], [N, 3, height, width] or [N, height, width] of floats or u8: a
 * grid in one file, or where `path` is a folder or ends in a slash, a file for each sample. */
ampc_status pictures_begin(const InferCommand *cmd, const ampc_output_desc *result, bool real64,
                           const char *path, Pictures **out);
/* The next `n` samples. */
ampc_status pictures_add(Pictures *p, const void *samples, int64_t n);
/* All is written, or, where `status` is a failure, no grid is. Frees. */
ampc_status pictures_end(Pictures *p, ampc_status status);

/* ---- npy.c ---- */
/* The first bytes of an NPY file of an array in C order: always as many, so that the number of rows
 * can be written when it is known. */
enum { NPY_HEADER = 256 };
void npy_header(ampc_dtype dtype, bool real64, int64_t rows, bool has_rows, uint32_t rank,
                const int64_t *dim, char out[NPY_HEADER]);
