/* The metadata of a GGUF file as a config.json, and the names of its tensors. */
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
  const char *architectures, *from, *to;
} names[] = {
#define GGUF_NAME(...) {__VA_ARGS__},
#include "gguf.def"
};
static const GgufRule settings[] = {
#define GGUF_SETTING(...) {__VA_ARGS__},
#include "gguf.def"
};
enum { SETTINGS = sizeof settings / sizeof *settings };
enum { KEYS = sizeof keys / sizeof *keys, NAMES = sizeof names / sizeof *names };

static bool belongs(const char *architectures, const char *architecture)
{
  return !*architectures || is_word(architectures, architecture);
}

/* Sets "a.b" in nested objects. */
static void set_field(json_t *root, const char *path, json_t *value)
{
  const char *dot = strchr(path, '.');
  if (!dot) {
    json_object_set(root, path, value);
    return;
  }
  json_t *inner = json_object_getn(root, path, (size_t)(dot - path));
  if (!inner) {
    inner = json_object();
    json_object_setn_new(root, path, (size_t)(dot - path), inner);
  }
  set_field(inner, dot + 1, value);
}

static ampc_status take_key(Folder *f, const char *architecture, const char *key,
                            const json_t *value)
{
  size_t n = strlen(architecture);
  if (strncmp(key, architecture, n) != 0 || key[n] != '.') return AMPC_OK;
  for (int i = 0; i < KEYS; i++) {
    if (!belongs(keys[i].architectures, architecture) || strcmp(keys[i].key, key + n + 1) != 0)
      continue;
    json_t *own = strcmp(json_string_value(value) ? json_string_value(value) : "", "none") == 0
                      ? json_null()
                      : (json_t *)(uintptr_t)value;
    if (*keys[i].field && !strchr("=/", *keys[i].field)) set_field(f->root, keys[i].field, own);
    return AMPC_OK;
  }
  return ampc_fail(AMPC_BAD_FILE, "%s: the metadata `%s` is not known for %s", f->path,
                   arena_shown(f->arena, key, ""), architecture);
}

/* Fields that the metadata repeat must agree. Sets those that are shares of a head. */
static ampc_status check_equal(const Folder *f, const json_t *meta, const char *architecture)
{
  for (int i = 0; i < KEYS; i++) {
    if (!*keys[i].field || !strchr("=/", *keys[i].field) ||
        !belongs(keys[i].architectures, architecture))
      continue;
    const char *key = arena_printf(f->arena, "%s.%s", architecture, keys[i].key);
    const json_t *own = json_object_get(meta, key);
    const json_t *field = json_object_get(f->root, keys[i].field + 1);
    json_int_t width = json_integer_value(json_object_get(f->root, "hidden_size"));
    json_int_t heads = json_integer_value(json_object_get(f->root, "num_attention_heads"));
    json_int_t wanted = field ? json_integer_value(field) : heads ? width / heads : 0;
    if (own && *keys[i].field == '/') {
      double n = json_number_value(own), share = n / (double)(wanted > 0 ? wanted : 1);
      if (floor(share * (double)wanted) < n) share = nextafter(share, 2);
      json_object_set_new(f->root, keys[i].field + 1, json_real(share));
    } else if (own && json_integer_value(own) != wanted)
      return ampc_fail(AMPC_BAD_FILE, "%s: the metadata `%s` is %lld; only %lld is known, as %s",
                       f->path, key, (long long)json_integer_value(own), (long long)wanted,
                       keys[i].field + 1);
  }
  return AMPC_OK;
}

/* Llama 3 scales its rotary positions. llama.cpp stores a divisor of each frequency instead of the
 * settings, so these are searched: the fitting length of the old context with the two limits that
 * all published nets have. */
static ampc_status find_scaling(Folder *f, const LoadTensor *t)
{
  enum { MOST = 512 };
  static const double low = 1, high = 4;
  float v[MOST];
  double theta = json_number_value(json_object_get(f->root, "rope_theta")), factor = 1, old = 8192;
  int64_t n = t->entry.elements;
  if (t->entry.dtype != AMPC_F32 || n < 1 || n > MOST)
    return ampc_fail(AMPC_BAD_FILE, "%s: rope_freqs.weight is no list of up to 512 f32", f->path);
  ampc_status status = tensor_file_load(t->file, t->entry.begin, v, n * (int64_t)sizeof *v);
  if (status) return status;
  for (int64_t i = 0; i < n; i++)
    if ((double)v[i] > factor) factor = (double)v[i];
  for (int round = 0; round < 2; round++) {
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
      double wave = 2 * acos(-1) * pow(theta, (double)i / (double)n);
      double share = fmin(fmax((old / wave - low) / (high - low), 0), 1);
      worst = fmax(worst, fabs((double)v[i] * ((1 - share) / factor + share) - 1));
      share = (1 / (double)v[i] - 1 / factor) / (1 - 1 / factor);
      if (round == 0 && share > 0.01 && share < 0.99)
        old = rint(wave * (share * (high - low) + low));
    }
    if (round == 0 || worst < 1e-4) continue;
    return ampc_fail(AMPC_BAD_FILE,
                     "%s: the divisors in rope_freqs.weight are not those of Llama 3", f->path);
  }
  json_object_set_new(f->root, "rope_scaling",
                      json_pack("{s:s,s:f,s:f,s:f,s:I}", "rope_type", "llama3", "factor", factor,
                                "low_freq_factor", low, "high_freq_factor", high,
                                "original_max_position_embeddings", (json_int_t)old));
  return AMPC_OK;
}

ampc_status gguf_config(Folder *f, const Loading *x)
{
  const json_t *meta = json_object_get(x->files[0].header, "__metadata__");
  const char *arch = json_string_value(json_object_get(meta, "general.architecture"));
  const char *key;
  json_t *value;
  ampc_status status = AMPC_OK;
  if (!arch)
    return ampc_fail(AMPC_BAD_FILE, "%s lacks the metadata `general.architecture`", f->path);
  if (json_integer_value(json_object_get(meta, "split.count")) > 1)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is one of several files of a net; join them with llama-gguf-split --merge",
                     f->path);
  arch = arena_strdup(f->arena, arch);
  f->root = json_object();
  json_object_set_new(f->root, "model_type", json_string(arch));
  json_object_foreach((json_t *)(uintptr_t)meta, key, value) if (!status) status =
      take_key(f, arch, key, value);
  if (!status) status = check_equal(f, meta, arch);
  const json_t *tokens = json_object_get(meta, "tokenizer.ggml.tokens");
  if (!json_object_get(f->root, "vocab_size") && tokens)
    json_object_set_new(f->root, "vocab_size", json_integer((json_int_t)json_array_size(tokens)));
  bool head = false, biases = false;
  for (uint32_t i = 0; i < x->n; i++) {
    head = head || strcmp(x->at[i].name, "output.weight") == 0;
    biases = biases || strcmp(x->at[i].name, "blk.0.attn_q.bias") == 0;
    if (strcmp(x->at[i].name, "token_embd.weight") == 0 && x->at[i].entry.rank == 2)
      json_object_set_new(f->root, "vocab_size", json_integer(x->at[i].entry.dim[0]));
    if (!status && strcmp(x->at[i].name, "rope_freqs.weight") == 0)
      status = find_scaling(f, &x->at[i]);
  }
  json_object_set_new(f->root, "tie_word_embeddings", json_boolean(!head));
  if (biases && strcmp(arch, "qwen2") != 0)
    json_object_set_new(f->root, "attention_bias", json_true());
  return status;
}

void gguf_settings(Folder *f, const Loading *x)
{
  Text t = text_new(f->arena);
  for (int i = 0; i < NAMES; i++) {
    bool there = false;
    for (uint32_t k = 0; k < x->n && belongs(names[i].architectures, f->model); k++)
      there = there || pattern_matches(names[i].from, x->at[k].name, false);
    if (there)
      text_printf(&t, "%s[\"%s\", \"%s\"]", t.n ? ",\n    " : "", names[i].from, names[i].to);
  }
  setting_add(f, "RENAME", arena_printf(f->arena, "[%s]", t.n ? t.at : ""));
  for (int i = 0; i < SETTINGS; i++)
    if (belongs(settings[i].architectures, f->model))
      setting_add(f, settings[i].constant, settings[i].code);
}
