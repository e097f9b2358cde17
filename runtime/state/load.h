/* What the files share that carry out `load` clauses. */
#pragma once
#include <stdio.h>
#include "runtime/runtime.h"
#include "safetensors.h"

/* A tensor of a file. */
typedef struct LoadTensor {
  const TensorFile *file;
  const char *name; /* there */
  char *ours;       /* what strip and rename make of it */
  TensorEntry entry;
  bool left;     /* it is not wanted: named by `unused`, or state of an optimizer of ours */
  bool is_taken; /* a parameter has it, under its name or under one that is tied to it */
} LoadTensor;

typedef enum Fit { FIT_none, FIT_same, FIT_transposed, FIT_shape, FIT_kind } Fit;

/* A clause at work: its tensors, and what becomes of the parameters of its model. */
typedef struct Loading {
  ampc_runtime *rt;
  ampc_tell *tell;
  void *to;
  const ampc_program *program;
  const ampc_load *load;
  char *path;    /* of the file, in the data directory */
  bool averages; /* those of a checkpoint of ours in the place of its weights */
  TensorFile *files;
  uint32_t n_files, n;
  LoadTensor *at;
  json_t *index;       /* name of ours -> number of its tensor */
  uint32_t *given;     /* one a parameter: number of its tensor, + 1; 0: the file has none */
  uint8_t *fit;        /* one a parameter: Fit */
  uint32_t *hits;      /* one a pattern: tensors that it named; pairs count at their left */
  uint32_t strip_hits; /* names that began with `strip` */
} Loading;

/* Patterns of names that may be missing, and of those that may stay unused. */
const char *const *load_missing(const ampc_load *x);
const char *const *load_unused(const ampc_load *x);
bool load_names(const char *const *patterns, uint32_t n, const char *name);

/* Whether the parameter belongs to the model of the clause; the name that the model has for it. */
bool load_is_own(const ampc_load *x, const ampc_param *q);
const char *load_own_name(const ampc_load *x, const char *path);

/* ---- load_files.c: one file, or the shards of an index ---- */
ampc_status load_files_open(Loading *x);
void load_files_close(Loading *x);

/* ---- load_tell.c ---- */
/* All that does not fit between the files of a model and the model, in one message, with the lines
 * to write; AMPC_OK: everything does. `all` are its clauses up to this one, the last of its model
 * if `last`: then parameters that none of them gives are told. */
ampc_status load_account(const Loading *x, const Loading *all, uint32_t n, bool last);

/* ---- load_values.c ---- */
typedef struct LoadCount { /* of what was written */
  uint32_t tensors, converted;
} LoadCount;
/* The tensor of parameter i becomes its value. Tells of values that are no numbers, or that a type
 * does not hold. */
ampc_status load_value(const Loading *x, uint32_t i, LoadCount *count);
/* Whether two tensors of the files have the same bytes, type and shape. */
ampc_status load_is_same(const LoadTensor *a, const LoadTensor *b, bool *out);
