/* A folder of Hugging Face, or a GGUF file, as a job. */
#pragma once
#include <jansson.h>
#include "compiler/base/arena.h"
#include "runtime/state/load.h"

/* A constant of the job and the code of its value. */
typedef struct Setting {
  const char *name, *code;
} Setting;

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
  VEC(Setting) settings;
  const char *absent; /* what the folder lacks: "model.safetensors, .."; "": nothing */
  json_t *tokenizer;  /* a tokenizer.json to write beside the job; NULL: none */
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
void setting_add(Folder *f, const char *name, const char *code);
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
/* Sets `tokenizer` from the metadata. */
ampc_status gguf_tokenizer(Folder *f, const Loading *x); /* gguf_tokenizer.c */
