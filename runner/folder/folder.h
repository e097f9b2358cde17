/* A folder of Hugging Face, or a GGUF file, as a job. */
#pragma once
#include <jansson.h>
#include "compiler/base/arena.h"
#include "runtime/state/load.h"

/* A constant of the job and the code of its value. */
typedef struct FolderSetting {
  const char *name, *code;
} FolderSetting;

typedef struct Family Family;

typedef struct Folder {
  Arena *arena;
  const char *path;    /* as the user gave it */
  const char *config;  /* path of config.json, or of the GGUF file */
  const char *lines;   /* the text of config.json; NULL: `root` was made from another file */
  bool gguf;           /* `path` is a GGUF file */
  const char *weights; /* path of the weights, or of the index of their shards; NULL: none */
  json_t *root;        /* what config.json says */
  const Family *family;
  const char *model; /* its model_type */
  VEC(FolderSetting) settings;
  const char *absent; /* what the folder lacks: "model.safetensors, .."; "": nothing */
  json_t *tokenizer, *tokenizer_config; /* .json files to write beside the job; NULL: none */
} Folder;

/* Whether `path` is a folder or a GGUF file, and so not an ONNX model. */
bool folder_is_model(const char *path);
/* Reads all but the tensors. `job_folder`: where the job will be. The caller calls folder_close,
 * also after a failure. */
ampc_status folder_open(Arena *arena, const char *path, const char *job_folder, Folder *out);
void folder_close(Folder *f);
/* Returns the job: the text of the family with the settings as its constants. */
const char *folder_job(Folder *f);

/* ---- config.c ---- */
struct Family {
  const char *name, *text, *models, *architectures, *prefix, *unused;
  bool encoder;
};
ampc_status config_read(Folder *f); /* sets family, model and settings from root */
/* Returns the constant of a field of config.json, for the model type in root; NULL: there is none.
 * *real: its values are reals. */
const char *config_constant(Folder *f, const char *key, bool *real);
void setting_add(Folder *f, const char *name, const char *code);
bool config_is_constant(const char *name); /* whether it is the constant of some field */
/* Returns a path as text of the job: relative to the job's folder if the file is in it or below. */
const char *path_code(Arena *arena, const char *path, const char *job_folder);
const char *setting_of(const Folder *f, const char *name); /* its code; NULL: there is none */
bool is_word(const char *words, const char *word);         /* words are separated by blanks */

/* ---- weights.c ---- */
/* Adds the settings that depend on the names of the tensors. */
void weights_settings(Folder *f, const Loading *x, const char *job_folder);

/* ---- gguf.c ---- */
ampc_status gguf_config(Folder *f, const Loading *x); /* sets root from the metadata */
void gguf_settings(Folder *f, const Loading *x);
/* Sets `tokenizer` and `tokenizer_config` from the metadata. */
ampc_status gguf_tokenizer(Folder *f, const Loading *x); /* gguf_tokenizer.c */
/* Tasks of tokens: in tokenizer.ggml.bos_token_id, and in tokenizer_config.json. */
enum { GGUF_TASKS = 4 };
extern const char *const gguf_tasks[GGUF_TASKS][2];
/* Adds the model, and for BPE of bytes the `pre`, of a tokenizer.json. NULL, or why GGUF has none.
 */
const char *gguf_tokenizer_kind(Folder *f, const json_t *root, json_t *meta);

/* ---- gguf_job.c: a job as a GGUF file, by the tables of the reader ---- */
typedef enum GgufChange { /* of weights; see gguf.def */
                          CHANGE_none,
                          CHANGE_pairs, /* rows of a head: the first half and the second take turns
                                         */
                          CHANGE_add,   /* the constant is added */
                          CHANGE_turn,  /* the matrix is transposed */
                          CHANGE_group, /* rows of heads: all queries, then all keys, all values */
                          CHANGE_gelu,  /* only nearly: llama.cpp has one GELU */
} GgufChange;
typedef struct GgufRule {
  const char *architectures, *constant, *code;
  GgufChange change;
  const char *pattern; /* of parameters */
} GgufRule;
/* Returns architecture i that GGUF files may have; NULL: there are fewer. */
const char *gguf_architecture(Arena *arena, uint32_t i);
/* Returns the name in the file of a parameter of the job; NULL: the architecture has none. */
const char *gguf_name(Arena *arena, const char *architecture, const char *own);
/* Returns rule i of an architecture; NULL: there are fewer. */
const GgufRule *gguf_rule(const char *architecture, uint32_t i);
bool gguf_is_constant(const char *name); /* whether the metadata may depend on it */
/* Fills the metadata of `x` from the constants of a job, reads them as the import does, and sets
 * *out_job to the job that this gives, but with the weights' order of that job. The caller calls
 * folder_close. */
ampc_status gguf_job(Folder *f, const char *architecture, const json_t *constants, const Loading *x,
                     const char **out_job);
/* Adds the tokenizer in `path` to the metadata; `vocabulary`: the rows of the embedding. */
ampc_status gguf_add_tokenizer(Folder *f, const char *path, int64_t vocabulary, json_t *meta);
