/* Reads config.json: each field becomes a constant of the job, by the rows of families.def. A field
 * that no row knows, or a value that the text cannot express, is refused, because it could change
 * the results of the net. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/shown.h"
#include "folder.h"

typedef enum FieldKind { COUNT, INDEX, REAL, FLAG, WORD, LIST } FieldKind;

typedef struct Field {
  const char *family, *models, *keys, *constant, *otherwise;
  FieldKind kind;
  const char *allowed;
} Field;

#define ROPE(name)         "rope_parameters." name "|rope_scaling." name
#define GELUS              "gelu=none gelu_new=tanh gelu_fast=tanh gelu_pytorch_tanh=tanh"
#define FIELD(family, ...) {#family, __VA_ARGS__},
static const Field fields[] = {
#include "families.def"
};
#define FAMILY(name, ...) extern const char family_##name[];
#include "families.def"
#define FAMILY(name, ...) {#name, family_##name, __VA_ARGS__},
static const Family families[] = {
#include "families.def"
};
enum { FIELDS = sizeof fields / sizeof *fields, FAMILIES = sizeof families / sizeof *families };

/* Fields that change no result of the net: for programs of Python, for generation, for other
 * tasks, or only for drawn weights. */
static const char ignored[] =
    "_attn_implementation _name_or_path _num_labels architectures attn_implementation "
    "auto_map bad_words_ids begin_suppress_tokens bos_token_id cache_implementation "
    "chunk_size_feed_forward classifier_dropout classifier_pooling cls_token_id "
    "decoder_start_token_id deterministic_flash_attn directionality diversity_penalty "
    "do_sample dtype early_stopping encoder_no_repeat_ngram_size eos_token_id "
    "exponential_decay_length_penalty finetuning_task forced_bos_token_id "
    "forced_eos_token_id gradient_checkpointing id2label initializer_cutoff_factor "
    "initializer_range is_llama_config label2id length_penalty max_length min_length "
    "model_type no_repeat_ngram_size num_beam_groups num_beams num_labels "
    "num_return_sequences output_attentions output_hidden_states output_scores pad_token_id "
    "pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head "
    "pooler_type prefix pretraining_tp problem_type pruned_heads reference_compile "
    "remove_invalid_values repad_logits_with_grad repetition_penalty return_dict "
    "return_dict_in_generate sep_token_id sparse_pred_ignore_index sparse_prediction "
    "summary_activation summary_first_dropout summary_proj_to_labels summary_type "
    "summary_use_proj suppress_tokens task_specific_params temperature tf_legacy_loss "
    "tie_encoder_decoder tokenizer_class top_k top_p torch_dtype torchscript "
    "transformers.js_config transformers_version typical_p unk_token_id use_bfloat16 "
    "use_cache";

bool is_word(const char *words, const char *word)
{
  size_t n = strlen(word);
  for (const char *at = words; n && (at = strstr(at, word)); at += n)
    if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
  return false;
}

void setting_add(Folder *f, const char *name, const char *code)
{
  for (uint32_t i = 0; i < f->settings.n; i++)
    if (strcmp(f->settings.at[i].name, name) == 0) {
      f->settings.at[i].code = code;
      return;
    }
  vec_push(f->arena, &f->settings, (FolderSetting){name, code});
}

const char *setting_of(const Folder *f, const char *name)
{
  for (uint32_t i = 0; i < f->settings.n; i++)
    if (strcmp(f->settings.at[i].name, name) == 0) return f->settings.at[i].code;
  return NULL;
}

/* ---- messages ---- */

/* The line of a key, which is the last part of a path. Keys of the same name are rare. */
static int line_of(const Folder *f, const char *path)
{
  const char *dot = strrchr(path, '.');
  const char *quoted = arena_printf(f->arena, "\"%s\"", dot ? dot + 1 : path);
  const char *found = f->lines ? strstr(f->lines, quoted) : NULL;
  int line = 1;
  for (const char *at = f->lines; found && at < found; at++) line += *at == '\n';
  return found ? line : 0;
}

static ampc_status refuse_key(const Folder *f, const char *key, const char *why)
{
  int line = line_of(f, key);
  return ampc_fail(AMPC_BAD_FILE, "%s%s: `%s` %s", f->config,
                   line ? arena_printf(f->arena, ":%d", line) : "", arena_shown(f->arena, key, ""),
                   why);
}

static ampc_status refuse_value(const Folder *f, const char *key, const json_t *value,
                                const char *wanted)
{
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
  const char *shown = arena_shown(
      f->arena, arena_strndup(f->arena, text ? text : "", text ? strnlen(text, 200) : 0), "");
  free(text);
  return refuse_key(f, key, arena_printf(f->arena, "is %s; expected %s", shown, wanted));
}

/* ---- fields ---- */

static bool applies(const Folder *f, const Field *d)
{
  bool own = strcmp(d->family, "any") == 0 || strcmp(d->family, f->family->name) == 0;
  return own && (!*d->models || is_word(d->models, f->model));
}

/* Finds "a.b" in nested objects. NULL: it is not there. */
static const json_t *find(const json_t *in, const char *path, size_t n)
{
  const char *dot = memchr(path, '.', n);
  size_t first = dot ? (size_t)(dot - path) : n;
  const json_t *at = json_object_getn(in, path, first);
  return dot && at ? find(at, dot + 1, n - first - 1) : at;
}

/* Whether `path`, of `n` bytes, is one of the keys of a field, or an object that contains one. */
static bool has_key(const Field *d, const char *path, bool inside)
{
  size_t n = strlen(path);
  for (const char *at = d->keys; *at; at += strcspn(at, "|"), at += *at == '|')
    if (strncmp(at, path, n) == 0 && (inside ? at[n] == '.' : !at[n] || at[n] == '|')) return true;
  return false;
}

static ampc_status check_known(const Folder *f, const json_t *in, const char *before)
{
  const char *key;
  json_t *value;
  ampc_status status = AMPC_OK;
  json_object_foreach((json_t *)(uintptr_t)in, key, value)
  {
    const char *path = *before ? arena_printf(f->arena, "%s.%s", before, key) : key;
    bool known = json_is_null(value) || (!*before && is_word(ignored, key)), holds = false;
    for (int i = 0; i < FIELDS; i++) {
      known = known || (applies(f, &fields[i]) && has_key(&fields[i], path, false));
      holds = holds || (applies(f, &fields[i]) && has_key(&fields[i], path, true));
    }
    if (!known && holds && json_is_object(value))
      status = check_known(f, value, path);
    else if (!known)
      status = refuse_key(f, path,
                          arena_printf(f->arena,
                                       "is not known for %s; if it changes no result of the net, "
                                       "remove it",
                                       f->model));
    if (status) return status;
  }
  return status;
}

/* ---- values ---- */

/* Finds a word among `allowed`. Returns its code; NULL: it is not there. */
static const char *word_code(const Folder *f, const char *allowed, const char *word)
{
  size_t n = strlen(word);
  for (const char *at = allowed; *at; at += strcspn(at, " "), at += *at == ' ') {
    size_t all = strcspn(at, " "), own = strcspn(at, " =");
    if (own != n || strncmp(at, word, n) != 0) continue;
    const char *code = own < all ? at + own + 1 : at;
    return arena_printf(f->arena, "\"%.*s\"", (int)(at + all - code), code);
  }
  return NULL;
}

/* Code for a list of words. A list that repeats is written by its period. */
static ampc_status list_code(Folder *f, const Field *d, const char *key, const json_t *value,
                             const char **out)
{
  size_t n = json_array_size(value), period = 1;
  const char *depth = setting_of(f, "DEPTH");
  Text t = text_new(f->arena);
  if (!json_is_array(value) || !depth || n != strtoull(depth, NULL, 10))
    return refuse_key(f, key, arena_printf(f->arena, "needs %s words, one a layer", depth));
  while (period < n) {
    size_t i = period;
    while (i < n && json_equal(json_array_get(value, i), json_array_get(value, i - period))) i++;
    if (i == n) break;
    period++;
  }
  text_puts(&t, "[");
  for (size_t i = 0; i < period; i++) {
    const char *word = json_string_value(json_array_get(value, i));
    const char *code = word ? word_code(f, d->allowed, word) : NULL;
    if (!code) return refuse_value(f, key, json_array_get(value, i), d->allowed);
    text_printf(&t, "%s%s", i ? ", " : "", code);
  }
  text_puts(&t, "]");
  *out = period == n ? t.at
         : period == 1
             ? arena_printf(f->arena, "%.*s for i in range(DEPTH)]", (int)t.n - 1, t.at)
             : arena_printf(f->arena, "[%s[i %% %zu] for i in range(DEPTH)]", t.at, period);
  return AMPC_OK;
}

static ampc_status value_code(Folder *f, const Field *d, const char *key, const json_t *value,
                              const char **out)
{
  double number = json_number_value(value),
         most = *d->allowed ? strtod(d->allowed, NULL) : HUGE_VAL;
  const char *word = json_string_value(value);
  *out = NULL;
  switch (d->kind) {
  case COUNT:
  case INDEX:
    if (json_is_integer(value) && number >= (d->kind == COUNT) && number <= most)
      *out = arena_printf(f->arena, "%lld", (long long)json_integer_value(value));
    return *out ? AMPC_OK
                : refuse_value(f, key, value,
                               arena_printf(f->arena, "a whole number up to %s", d->allowed));
  case REAL:
    if (json_is_number(value) && isfinite(number) && number >= 0 && number <= most) {
      bool whole = number == rint(number) && number < 1e9;
      *out = whole ? arena_printf(f->arena, "%.1f", number) : arena_number(f->arena, number, 1);
    }
    return *out ? AMPC_OK
                : refuse_value(f, key, value,
                               *d->allowed
                                   ? arena_printf(f->arena, "a number from 0 to %s", d->allowed)
                                   : "a number from 0 on");
  case FLAG:
    if (json_is_boolean(value)) *out = json_is_true(value) ? "true" : "false";
    if (*out && *d->allowed && strcmp(*out, d->allowed) != 0) *out = NULL;
    return *out ? AMPC_OK : refuse_value(f, key, value, *d->allowed ? d->allowed : "true or false");
  case WORD:
    if (word) *out = word_code(f, d->allowed, word);
    return *out ? AMPC_OK
                : refuse_value(f, key, value, arena_printf(f->arena, "one of: %s", d->allowed));
  case LIST:
    break;
  }
  return list_code(f, d, key, value, out);
}

/* The code for a field that is absent or null. NULL: it must be there. */
static const char *otherwise(const Folder *f, const Field *d, bool null)
{
  const char *bar = d->otherwise ? strchr(d->otherwise, '|') : NULL;
  if (!bar) return d->otherwise;
  return null ? bar + 1 : arena_strndup(f->arena, d->otherwise, (size_t)(bar - d->otherwise));
}

/* Reads one field under all of its names. Two names with different values contradict. */
static ampc_status read_field(Folder *f, const Field *d)
{
  const char *code = NULL, *first = NULL;
  bool null = false;
  for (const char *at = d->keys; *at; at += strcspn(at, "|"), at += *at == '|') {
    size_t n = strcspn(at, "|");
    const char *key = arena_strndup(f->arena, at, n), *own;
    const json_t *value = find(f->root, at, n);
    null = null || json_is_null(value);
    if (!value || json_is_null(value)) continue;
    ampc_status status = value_code(f, d, key, value, &own);
    if (status) return status;
    if (code && strcmp(code, own) != 0)
      return refuse_key(f, key, arena_printf(f->arena, "is %s, but `%s` is %s", own, first, code));
    code = own;
    if (!first) first = key;
  }
  if (!code) code = otherwise(f, d, null);
  if (!code) return refuse_key(f, d->keys, "is missing");
  if (*d->constant) setting_add(f, d->constant, code);
  return AMPC_OK;
}

/* ---- the family ---- */

static ampc_status find_family(Folder *f)
{
  const char *known = "", *model = json_string_value(json_object_get(f->root, "model_type"));
  for (int i = 0; i < FAMILIES; i++) {
    known = arena_printf(f->arena, "%s%s%s", known, *known ? " " : "", families[i].models);
    if (model && is_word(families[i].models, model)) f->family = &families[i];
  }
  f->model = model;
  if (f->family) return AMPC_OK;
  const json_t *value = json_object_get(f->root, "model_type");
  const char *wanted = arena_printf(f->arena, "one of: %s", known);
  return value ? refuse_value(f, "model_type", value, wanted)
               : refuse_key(f, "model_type",
                            arena_printf(f->arena, "is missing; expected %s", wanted));
}

const char *config_constant(Folder *f, const char *key, bool *real)
{
  if (find_family(f)) return NULL;
  for (int i = 0; i < FIELDS; i++)
    if (*fields[i].constant && applies(f, &fields[i]) && has_key(&fields[i], key, false)) {
      *real = fields[i].kind == REAL;
      return fields[i].constant;
    }
  return NULL;
}

bool config_is_constant(const char *name)
{
  for (int i = 0; i < FIELDS; i++)
    if (strcmp(fields[i].constant, name) == 0) return true;
  return false;
}

static ampc_status check_architecture(const Folder *f)
{
  const json_t *list = json_object_get(f->root, "architectures"), *value;
  size_t i;
  json_array_foreach(list, i, value)
  {
    const char *name = json_string_value(value);
    if (!name || !is_word(f->family->architectures, name))
      return refuse_value(f, "architectures", value,
                          arena_printf(f->arena, "one of: %s", f->family->architectures));
  }
  return AMPC_OK;
}

ampc_status config_read(Folder *f)
{
  if (!json_is_object(f->root)) return ampc_fail(AMPC_BAD_FILE, "%s is no JSON object", f->config);
  ampc_status status = find_family(f);
  if (!status) status = check_architecture(f);
  if (!status) status = check_known(f, f->root, "");
  for (int i = 0; i < FIELDS && !status; i++)
    if (applies(f, &fields[i])) status = read_field(f, &fields[i]);
  return status;
}
