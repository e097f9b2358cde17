/* Types and functions that the files of `amp infer` share. */
#pragma once
#include <stdio.h>
#include "ampc_rt.h"
#include "compiler/cli/option_table.h"
#include "compiler/driver.h"
#include "runtime/data/texts/chat.h"
#include "sample.h"

typedef struct InferInput { /* --input [NAME=]FILE */
  const char *name, *file;  /* name NULL: the only argument */
} InferInput;

typedef struct InferOutput { /* --output and --png [NAME=]FILE */
  const char *name, *file;   /* name NULL: the only result */
  bool png;
} InferOutput;

typedef struct Prompt { /* one of --prompts */
  int64_t *at, n;
  const char *shown; /* its part of the result: "prompt": "..." */
  uint32_t line;     /* of the file */
} Prompt;

typedef struct PromptText { /* the prompt of --generate */
  int64_t *at, n;
  Prompt *each; /* of --prompts; `n` is then the length of the longest one */
  uint32_t n_each;
  bool numbers;         /* tokens of a file, not bytes */
  Tokenizer *tokenizer; /* NULL: there is none */
  bool bare;            /* the job's texts have nothing that the tokenizer adds before a text */
  Chat *chat;           /* not NULL: the prompt is a question; only its answer is printed */
  int64_t stop;         /* the token that ends the answer; -1: none does */
} PromptText;

typedef struct InferCommand {
  Options compile;
  ampc_train_options train; /* device, seed, data_dir */
  const char *block, *data, *weights, *classes, *names;
  const char *known_classes; /* the names of ampc_program.classes that the weights have, or NULL */
  InferInput *inputs;
  InferOutput *outputs;
  uint32_t n_inputs, n_outputs;
  uint32_t top;     /* 0: not given */
  uint32_t columns; /* columns of a grid of pictures; 0: the default */
  bool ranged;      /* `low` is black and `high` is white; else 0 and 1 */
  double low, high;
  const char *what;  /* begins messages about a text: "--generate" */
  uint32_t generate; /* 0: not given */
  const char *prompt, *prompt_file, *prompts, *tokenizer, *template;
  uint32_t batch; /* texts at a time, of --prompts; 0: the default */
  bool chat, no_cache;
  bool line; /* the text ends with the end of a line, also in a file */
  Sampling sampling;
  const char **stop; /* stop strings */
  uint32_t n_stops;
  PromptText text;
  uint32_t context, max_tokens; /* of amp chat */
  const char *system;
  bool quiet, verbose;
} InferCommand;

/* ---- input.c ---- */
/* Returns the infer block of that name in c->ast, or the only one if `wanted` is NULL. Returns NULL
 * on failure, with ampc_last_error(). */
const Function *infer_choose_block(Compile *c, const char *wanted);
/* Stores the calls that read the block's arguments in c->options. False: see ampc_last_error(). */
bool infer_choose_inputs(Compile *c, const InferCommand *cmd, const Function *block);

/* ---- infer.c ---- */
typedef struct InferVerb {  /* a verb that compiles an infer block alone and runs it */
  const OptionTable *table; /* fills an InferCommand */
  const char *what;
  int (*check)(
      const InferCommand *cmd); /* of the options; returns 0, or exit status 2 after a message */
  ampc_status (*begin)(InferCommand *cmd, Compile *c, const Function *block); /* before compiling */
  ampc_status (*run)(ampc_runtime *rt, const InferCommand *cmd);
} InferVerb;
int infer_verb_main(const InferVerb *verb, int argc, char **argv);
extern const OptionRow block_options[];          /* --block, --weights */
extern const OptionRow text_options[];           /* tokenizer, template, sampling, stop */
int text_options_check(const InferCommand *cmd); /* warns of options without effect; returns 0 */
/* Splits [NAME=]FILE. A name contains no slash, so "a/b=c" is only a file. Without a name, *name is
 * NULL. */
void infer_split(Arena *arena, const char *value, const char **name, const char **file);
/* Runs block 0 over all its data. */
ampc_status infer_run(ampc_runtime *rt, const InferCommand *cmd);

/* ---- prompt.c ---- */
extern const char prompt_templates[]; /* for messages: what --template may be */
/* Opens the tokenizer of the command line or of the job in cmd->text, if there is one. `what`: it
 * is required, with its template, and this text begins messages; else NULL. The caller calls
 * prompt_close in any case. */
ampc_status prompt_open(InferCommand *cmd, Compile *c, const char *what);
void prompt_close(InferCommand *cmd);
/* Refuses a block of several arguments. */
ampc_status prompt_check_block(const InferCommand *cmd, const Function *block);
/* Refuses a block if the length of the text is no dim, so that no decoder can be derived. */
ampc_status prompt_need_dim(const Compile *c, const Function *block);
/* Sets *at to the tokens of a text, in the arena: of a question if there is a chat. */
ampc_status prompt_encode(const PromptText *t, Arena *arena, const char *bytes, size_t n,
                          int64_t **at, int64_t *count);
/* Copies ids, which it frees. */
void prompt_keep(Arena *arena, Ids *ids, int64_t **at, int64_t *count);

/* ---- write.c: where results go ---- */
typedef struct InferWriter InferWriter;
/* Opens the outputs of block 0. `data`: its arguments, or NULL. `batches`: number of batches; all
 * but the last are full. */
ampc_status infer_write_begin(ampc_runtime *rt, const InferCommand *cmd, const ampc_batches *data,
                              int64_t batches, InferWriter **out);
/* Writes the first `samples` rows of the results of a batch. */
ampc_status infer_write_batch(InferWriter *w, int64_t samples);
/* Finishes the files and frees w. If `status` is a failure, the unfinished files are removed. */
ampc_status infer_write_end(InferWriter *w, ampc_status status);

/* ---- pictures.c: results as PNG ---- */
typedef struct Pictures Pictures;
/* Begins pictures of a result [N, 1, height, width], [N, 3, height, width] or [N, height, width] of
 * floats or u8. Writes one grid; or one file per sample if `path` is a folder or ends in a
 * slash. */
ampc_status pictures_begin(const InferCommand *cmd, const ampc_output_desc *result, bool real64,
                           const char *path, Pictures **out);
/* Adds the next `n` samples. */
ampc_status pictures_add(Pictures *p, const void *samples, int64_t n);
/* Writes the grid, unless `status` is a failure, and frees p. */
ampc_status pictures_end(Pictures *p, ampc_status status);

/* ---- npy.c ---- */
/* Writes the header of an NPY file in C order. Its size is fixed, so that it can be overwritten
 * when the number of rows is known. */
enum { NPY_HEADER = 256 };
void npy_header(ampc_dtype dtype, bool real64, int64_t rows, bool has_rows, uint32_t rank,
                const int64_t *dim, char out[NPY_HEADER]);
