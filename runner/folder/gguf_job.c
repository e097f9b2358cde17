/* A job as a GGUF file: the tables of gguf.def and families.def from right to left. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/pattern.h"
#include "folder.h"

static const struct {
  const char *architectures, *key, *field;
} keys[] = {
#define GGUF_KEY(...) {__VA_ARGS__},
#include "gguf.def"
};
static const struct {
  const char *architectures, *file, *own;
} names[] = {
#define GGUF_NAME(...) {__VA_ARGS__},
#include "gguf.def"
};
static const GgufRule rules[] = {
#define GGUF_SETTING(...) {__VA_ARGS__},
#include "gguf.def"
};
enum {
  KEYS = sizeof keys / sizeof *keys,
  NAMES = sizeof names / sizeof *names,
  RULES = sizeof rules / sizeof *rules
};
/* Further constants that decide what `next` of the job computes, or how it is stored. */
static const char others[] = "BATCH LENGTH RECOMPUTE TOKENIZER";
static const char scaling[] = "ROPE_TYPE ROPE_FACTOR ROPE_CONTEXT ROPE_LOW ROPE_HIGH";

const char *gguf_architecture(Arena *arena, uint32_t i)
{
  const char *all = "";
  for (int k = 0; k < NAMES; k++)
    for (const char *at = names[k].architectures; *at; at += strcspn(at, " "), at += *at == ' ') {
      const char *word = arena_strndup(arena, at, strcspn(at, " "));
      if (is_word(all, word)) continue;
      if (i-- == 0) return word;
      all = arena_printf(arena, "%s %s", all, word);
    }
  return NULL;
}

const char *gguf_name(Arena *arena, const char *architecture, const char *own)
{
  for (int i = 0; i < NAMES; i++) {
    bool lost = false;
    if (!is_word(names[i].architectures, architecture)) continue;
    char *name = pattern_rename(names[i].own, names[i].file, own, &lost);
    const char *out = name ? arena_strdup(arena, name) : NULL;
    free(name);
    if (out) return out;
  }
  return NULL;
}

const GgufRule *gguf_rule(const char *architecture, uint32_t i)
{
  for (int k = 0; k < RULES; k++)
    if (is_word(rules[k].architectures, architecture) && i-- == 0) return &rules[k];
  return NULL;
}

bool gguf_is_constant(const char *name)
{
  bool is = is_word(others, name) || config_is_constant(name);
  for (int k = 0; k < RULES && !is; k++) is = strcmp(rules[k].constant, name) == 0;
  return is;
}

static const char *word_of(const json_t *constants, const char *name)
{
  const char *text = json_string_value(json_object_get(constants, name));
  return text ? text : "";
}

/* Adds what the key says, from the constant of its field. */
static ampc_status add_key(Folder *f, const json_t *constants, int i, json_t *meta)
{
  const char *field = keys[i].field + (*keys[i].field == '=' || *keys[i].field == '/');
  bool real = false, scales = strncmp(keys[i].key, "rope.scaling.", 13) == 0;
  const char *name = *field ? config_constant(f, field, &real) : NULL;
  if (!name || (scales && !is_word("linear yarn", word_of(constants, "ROPE_TYPE")))) return AMPC_OK;
  const json_t *value = json_object_get(constants, name);
  double width = json_number_value(json_object_get(constants, "WIDTH"));
  double heads = json_number_value(json_object_get(constants, "HEADS"));
  double number = json_number_value(value);
  if (!value)
    return ampc_fail(AMPC_BAD_USAGE, "the job has no `const %s`, from which %s.%s comes", name,
                     f->model, keys[i].key);
  if (strstr(keys[i].key, "softcapping") && number == 0)
    return ampc_fail(AMPC_BAD_USAGE, "%s is 0, but llama.cpp's %s needs a bound", name, f->model);
  if (*keys[i].field == '/' && heads > 0)
    json_object_set_new(meta, arena_printf(f->arena, "%s.%s", f->model, keys[i].key),
                        json_integer((json_int_t)(floor(width / heads) * number)));
  else
    json_object_set_new(meta, arena_printf(f->arena, "%s.%s", f->model, keys[i].key),
                        real ? json_real(number) : json_deep_copy(value));
  return AMPC_OK;
}

/* Sets constants of the text to the values that the job has. */
static void take(Folder *f, const json_t *constants, const char *words)
{
  for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ') {
    const char *name = arena_strndup(f->arena, at, strcspn(at, " "));
    char *code = json_dumps(json_object_get(constants, name), JSON_ENCODE_ANY);
    if (code) setting_add(f, name, arena_strdup(f->arena, code));
    free(code);
  }
}

ampc_status gguf_job(Folder *f, const char *architecture, const json_t *constants, const Loading *x,
                     const char **out_job)
{
  json_t *meta = json_object_get(x->files[0].header, "__metadata__");
  const GgufRule *rule;
  ampc_status status = AMPC_OK;
  f->root = json_pack("{s:s}", "model_type", architecture);
  json_object_set_new(meta, "general.architecture", json_string(architecture));
  bool real;
  if (!config_constant(f, "vocab_size", &real)) return AMPC_BAD_FILE; /* also finds the family */
  for (int i = 0; i < KEYS && !status; i++)
    if (!*keys[i].architectures || is_word(keys[i].architectures, architecture))
      status = add_key(f, constants, i, meta);
  json_decref(f->root);
  f->root = NULL;
  if (!status) status = gguf_config(f, x);
  if (!status) status = config_read(f);
  if (status) return status;
  gguf_settings(f, x);
  for (uint32_t i = 0; (rule = gguf_rule(architecture, i)); i++)
    if (rule->change != CHANGE_none && rule->change != CHANGE_turn)
      take(f, constants, rule->constant);
  take(f, constants, others);
  if (strcmp(architecture, "llama") == 0 && is_word("llama3", word_of(constants, "ROPE_TYPE")))
    take(f, constants, scaling); /* is a tensor, which the caller writes */
  *out_job = folder_job(f);
  return AMPC_OK;
}
