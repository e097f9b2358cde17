/* Shared by the files that execute `load` clauses. */
#pragma once
#include <stdio.h>
#include "runtime/runtime.h"
#include "safetensors.h"

/* A tensor of a file. */
typedef struct LoadTensor {
  const TensorFile *file;
  const char *name; /* its name in the file */
  char *ours;       /* its name after strip and rename */
  TensorEntry entry;
  bool left;     /* not loaded: `unused` names it, or it is optimizer state in our checkpoint */
  bool is_taken; /* a parameter has this name, or a tied name of it */
} LoadTensor;

typedef enum Fit { FIT_none, FIT_same, FIT_transposed, FIT_shape, FIT_kind } Fit;

/* A `load` clause that is executed: its tensors, and the parameters that take them. */
typedef struct Loading {
  ampc_runtime *rt;
  ampc_tell *tell;
  void *to;
  const ampc_program *program;
  const ampc_load *load;
  char *path;    /* path of the file, including the data directory */
  bool averages; /* in a checkpoint of ours, averages replace their weights */
  TensorFile *files;
  uint32_t n_files, n;
  LoadTensor *at;
  json_t *index;   /* name after strip and rename -> index of its tensor */
  uint32_t *given; /* one per parameter: index of its tensor + 1; 0: the file has none */
  uint8_t *fit;    /* one per parameter: a Fit */
  uint32_t *hits; /* one per pattern: how many names matched. A pair of `rename` uses only the entry
                     of its left pattern */
  uint32_t strip_hits; /* number of names that began with `strip` */
} Loading;

/* Return the patterns of `missing`, and the patterns of `unused`. */
const char *const *load_missing(const ampc_load *x);
const char *const *load_unused(const ampc_load *x);
bool load_names(const char *const *patterns, uint32_t n, const char *name);

/* load_is_own returns whether the parameter belongs to the model of the clause, and the clause is
 * about its kind: of an adapter or not. load_own_name returns the parameter's name in that model.
 */
bool load_is_own(const ampc_load *x, const ampc_param *q);
const char *load_own_name(const ampc_load *x, const char *path);

/* ---- load_files.c: one file, or the shards of an index ---- */
ampc_status load_files_open(Loading *x);
void load_files_close(Loading *x);

/* ---- load_tell.c ---- */
/* Reports all mismatches between a model and its files in one message, and suggests the text that
 * resolves them. Returns AMPC_OK if there is no mismatch. `all`: the model's clauses up to this
 * one. `last`: this is its last clause, so parameters that no clause sets are reported, too. */
ampc_status load_account(const Loading *x, const Loading *all, uint32_t n, bool last);

/* ---- load_values.c ---- */
typedef struct LoadCount { /* counts of what was written */
  uint32_t tensors, converted;
} LoadCount;
/* Loads parameter i from its tensor. Reports values that are not finite or that do not fit into a
 * type. */
ampc_status load_value(const Loading *x, uint32_t i, LoadCount *count);
/* Whether two tensors of the files have the same bytes, type and shape. */
ampc_status load_is_same(const LoadTensor *a, const LoadTensor *b, bool *out);
