/* The tokenizer in the metadata of a GGUF file, as a tokenizer.json of Hugging Face. Flags of added
 * tokens (lstrip, rstrip, single_word) are not in GGUF and become false. */
#include <stdlib.h>
#include <string.h>
#include "folder.h"

const char *const gguf_tasks[GGUF_TASKS][2] = {
    {"bos", "bos_token"}, {"eos", "eos_token"}, {"padding", "pad_token"}, {"unknown", "unk_token"}};

/* Types of tokens in `tokenizer.ggml.token_type`. */
enum { TOKEN_control = 3, TOKEN_user = 4, TOKEN_unused = 5 };

#define BYTES(regex)                                                                               \
  "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":" regex  \
  "}"
#define SPLIT(digits)                                                                              \
  "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?i:'s|" \
  "'"                                                                                              \
  "t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" digits                           \
  "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},"       \
  "\"behavior\":\"Isolated\",\"invert\":false}," BYTES("false") "]}"

/* What `tokenizer.ggml.pre` stands for. */
static const struct {
  const char *pre, *normalizer, *pre_tokenizer;
  bool ignore_merges, begins; /* begins: a token at the beginning, unless the file says otherwise */
} pres[] = {
    {"gpt-2", "null", BYTES("true"), false, false},
    {"smollm", "null",
     "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":true}"
     "," BYTES("true") "]}",
     false, false},
    {"llama-bpe", "null", SPLIT("\\\\p{N}{1,3}"), true, true},
    {"qwen2", "{\"type\":\"NFC\"}", SPLIT("\\\\p{N}"), false, false},
};
enum { PRES = sizeof pres / sizeof *pres };

static const char words[] = "\"normalizer\":%s,\"pre_tokenizer\":null,\"decoder\":{\"type\":"
                            "\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
                            "\"String\":\"\\u2581\"},\"content\":\" \"},{\"type\":\"ByteFallback\"}"
                            ",{\"type\":\"Fuse\"}%s]}";
static const char strip[] = ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}";
#define PREPEND                                                                                    \
  "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\\u2581\"},%s]}"
static const char blanks[] =
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\\u2581\"}";

typedef struct Made {
  Folder *f;
  const json_t *meta, *tokens, *types;
  json_t *vocab; /* token -> id */
} Made;

static ampc_status refuse_tokens(const Folder *f, const char *key, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE, "%s: the metadata `tokenizer.ggml.%s` %s", f->path, key, why);
}

static const json_t *get(const Made *m, const char *key)
{
  return json_object_get(m->meta, arena_printf(m->f->arena, "tokenizer.ggml.%s", key));
}

static bool flag(const Made *m, const char *key, bool otherwise)
{
  const json_t *value = get(m, key);
  return value ? json_is_true(value) : otherwise;
}

/* ---- parts ---- */

static ampc_status add_tokens(Made *m, json_t *root)
{
  json_t *added = json_array(), *token;
  size_t i;
  json_object_set_new(root, "added_tokens", added);
  m->vocab = json_object();
  json_array_foreach(m->tokens, i, token)
  {
    json_int_t type = json_integer_value(json_array_get(m->types, i));
    const char *text = json_string_value(token);
    if (!text) return refuse_tokens(m->f, "tokens", "has a token that is not UTF-8");
    if (json_object_getn(m->vocab, text, json_string_length(token)))
      return refuse_tokens(
          m->f, "tokens",
          arena_printf(m->f->arena, "has `%s` twice", arena_shown(m->f->arena, text, "")));
    json_object_setn_new(m->vocab, text, json_string_length(token), json_integer((json_int_t)i));
    if (type == TOKEN_control || type == TOKEN_user)
      json_array_append_new(added,
                            json_pack("{s:I,s:O,s:b,s:b,s:b,s:b,s:b}", "id", (json_int_t)i,
                                      "content", token, "single_word", 0, "lstrip", 0, "rstrip", 0,
                                      "normalized", 0, "special", type == TOKEN_control));
  }
  return AMPC_OK;
}

/* The tokens that are put before and after a text. */
static ampc_status add_processor(Made *m, json_t *root, bool begins)
{
  json_t *single, *special, *processor, *text[2];
  const char *keys[] = {"bos_token_id", "eos_token_id"};
  bool given[] = {flag(m, "add_bos_token", begins), flag(m, "add_eos_token", false)};
  for (int i = 0; i < 2; i++) {
    const json_t *id = get(m, keys[i]);
    bool good = json_is_integer(id) && json_integer_value(id) >= 0;
    text[i] = good ? json_array_get(m->tokens, (size_t)json_integer_value(id)) : NULL;
    if (given[i] && !text[i]) return refuse_tokens(m->f, keys[i], "names no token");
  }
  single = json_array();
  special = json_object();
  for (int i = 0; i < 2; i++) {
    if (given[i]) {
      json_array_append_new(
          single, json_pack("{s:{s:O,s:i}}", "SpecialToken", "id", text[i], "type_id", 0));
      json_object_set_new(special, json_string_value(text[i]),
                          json_pack("{s:O,s:[I],s:[O]}", "id", text[i], "ids",
                                    json_integer_value(get(m, keys[i])), "tokens", text[i]));
    }
    if (i == 0)
      json_array_append_new(single,
                            json_pack("{s:{s:s,s:i}}", "Sequence", "id", "A", "type_id", 0));
  }
  processor = json_pack("{s:s,s:o,s:[],s:o}", "type", "TemplateProcessing", "single", single,
                        "pair", "special_tokens", special);
  if (!given[0] && !given[1]) {
    json_decref(processor);
    processor = json_null();
  }
  json_object_set_new(root, "post_processor", processor);
  return AMPC_OK;
}

static void add_parts(json_t *root, const char *text)
{
  json_t *parts = json_loads(text, 0, NULL);
  json_object_update(root, parts);
  json_decref(parts);
}

/* ---- BPE of bytes ---- */

static ampc_status make_bytes(Made *m, json_t *root)
{
  const char *pre = json_string_value(get(m, "pre")), *known = "";
  const json_t *merges = get(m, "merges");
  for (int i = 0; i < PRES; i++) {
    known = arena_printf(m->f->arena, "%s %s", known, pres[i].pre);
    if (!pre || strcmp(pre, pres[i].pre) != 0) continue;
    if (!json_is_array(merges)) return refuse_tokens(m->f, "merges", "is missing");
    add_parts(root,
              arena_printf(m->f->arena, "{\"normalizer\":%s,\"pre_tokenizer\":%s,\"decoder\":%s}",
                           pres[i].normalizer, pres[i].pre_tokenizer, BYTES("true")));
    json_object_set_new(root, "model",
                        json_pack("{s:s,s:n,s:n,s:n,s:n,s:b,s:b,s:b,s:O,s:O}", "type", "BPE",
                                  "dropout", "unk_token", "continuing_subword_prefix",
                                  "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0,
                                  "ignore_merges", pres[i].ignore_merges, "vocab", m->vocab,
                                  "merges", merges));
    return add_processor(m, root, pres[i].begins);
  }
  return refuse_tokens(m->f, "pre",
                       arena_printf(m->f->arena, "is %.60s; known are%s",
                                    pre ? arena_shown(m->f->arena, pre, "") : "missing", known));
}

/* ---- sentencepiece ---- */

typedef struct Merge {
  const char *text; /* of both parts */
  size_t left, n;   /* bytes of the left part, and of both */
  double score;
  size_t left_id, right_id, number;
} Merge;

static int by_number(double a, double b)
{
  return (a > b) - (a < b);
}

/* The order in which the library's converter writes merges. */
static int by_score(const void *a, const void *b)
{
  const Merge *x = a, *y = b;
  int order = by_number(y->score, x->score);
  if (!order) order = by_number((double)y->left, (double)x->left);
  return order ? order : by_number((double)x->number, (double)y->number);
}

/* Each way to make a token of two others is a merge; tokens with a higher score come first. */
static ampc_status find_merges(const Made *m, json_t *merges)
{
  const json_t *scores = get(m, "scores");
  VEC(Merge) all = {0};
  json_t *token;
  size_t i;
  if (json_array_size(scores) != json_array_size(m->tokens))
    return refuse_tokens(m->f, "scores", "has not one number a token");
  json_array_foreach(m->tokens, i, token)
  {
    const char *text = json_string_value(token);
    size_t n = json_string_length(token);
    for (size_t left = 1; left < n && n < 256; left++) {
      if (((unsigned char)text[left] & 0xc0) == 0x80) continue; /* within a character */
      const json_t *a = json_object_getn(m->vocab, text, left);
      const json_t *b = a ? json_object_getn(m->vocab, text + left, n - left) : NULL;
      if (b)
        vec_push(m->f->arena, &all,
                 (Merge){text, left, n, json_number_value(json_array_get(scores, i)),
                         (size_t)json_integer_value(a), (size_t)json_integer_value(b), all.n});
    }
  }
  if (all.n) qsort(all.at, all.n, sizeof *all.at, by_score);
  for (i = 0; i < all.n; i++) {
    const Merge *x = &all.at[i];
    json_array_append_new(
        merges, json_pack("[s%,s%]", x->text, x->left, x->text + x->left, x->n - x->left));
  }
  return AMPC_OK;
}

static ampc_status make_pieces(Made *m, json_t *root)
{
  bool prefix = flag(m, "add_space_prefix", true);
  const json_t *unknown =
      json_array_get(m->tokens, (size_t)json_integer_value(get(m, "unknown_token_id")));
  if (!unknown) return refuse_tokens(m->f, "unknown_token_id", "names no token");
  json_t *merges = json_array();
  const char *normalizer = prefix ? arena_printf(m->f->arena, PREPEND, blanks) : blanks;
  const char *parts = arena_printf(m->f->arena, words, normalizer, prefix ? strip : "");
  add_parts(root, arena_printf(m->f->arena, "{%s}", parts));
  json_object_set_new(root, "model",
                      json_pack("{s:s,s:n,s:O,s:n,s:n,s:b,s:b,s:b,s:O,s:o}", "type", "BPE",
                                "dropout", "unk_token", unknown, "continuing_subword_prefix",
                                "end_of_word_suffix", "fuse_unk", 1, "byte_fallback", 1,
                                "ignore_merges", 0, "vocab", m->vocab, "merges", merges));
  ampc_status status = find_merges(m, merges);
  return status ? status : add_processor(m, root, true);
}

/* ---- the other direction ---- */

#define METASPACE(scheme)                                                                          \
  "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"" scheme               \
  "\",\"split\":false}"
/* What sentencepiece's tokenizers are as JSON. A Split at blanks finds none. */
static const struct {
  const char *normalizer, *pre_tokenizer;
  bool prefix;
} forms[] = {
    {PREPEND, "null", true},
    {"%s", "null", false},
    {"%s",
     "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"MergedWithPrevious\","
     "\"invert\":false}",
     false},
    {"null", METASPACE("first"), true},
    {"null", METASPACE("never"), false},
};

/* A part of a tokenizer.json without fields that change no ids. */
static json_t *plain(const json_t *from)
{
  json_t *copy = json_deep_copy(from), *value;
  const char *key;
  size_t i;
  json_object_del(copy, "trim_offsets");
  json_array_foreach(copy, i, value) json_array_set_new(copy, i, plain(value));
  json_object_foreach(copy, key, value) json_object_set_new(copy, key, plain(value));
  return copy;
}

static bool is_part(const json_t *root, const char *key, const char *text)
{
  json_t *own = plain(json_object_get(root, key)), *read = json_loads(text, JSON_DECODE_ANY, NULL),
         *other = plain(read);
  bool same = json_equal(own, other);
  json_decref(own);
  json_decref(read);
  json_decref(other);
  return same;
}

const char *gguf_tokenizer_kind(Folder *f, const json_t *root, json_t *meta)
{
  const json_t *model = json_object_get(root, "model");
  const char *type = json_string_value(json_object_get(model, "type"));
  bool pieces = json_is_true(json_object_get(model, "byte_fallback"));
  bool ignores = json_is_true(json_object_get(model, "ignore_merges"));
  if (type && strcmp(type, "BPE") != 0) return "model";
  json_object_set_new(meta, "tokenizer.ggml.model", json_string(pieces ? "llama" : "gpt2"));
  for (size_t i = 0; i < sizeof forms / sizeof *forms && pieces; i++)
    if (is_part(root, "normalizer", arena_printf(f->arena, forms[i].normalizer, blanks)) &&
        is_part(root, "pre_tokenizer", forms[i].pre_tokenizer)) {
      json_object_set_new(meta, "tokenizer.ggml.add_space_prefix", json_boolean(forms[i].prefix));
      return NULL;
    }
  for (int i = 0; i < PRES && !pieces; i++)
    if (is_part(root, "normalizer", pres[i].normalizer) && ignores == pres[i].ignore_merges &&
        is_part(root, "pre_tokenizer", pres[i].pre_tokenizer)) {
      json_object_set_new(meta, "tokenizer.ggml.pre", json_string(pres[i].pre));
      return NULL;
    }
  return "pre_tokenizer";
}

/* Tokens with a task, and the template of chats. */
static void make_config(const Made *m)
{
  json_t *config = m->f->tokenizer_config =
      json_pack("{s:s}", "tokenizer_class", "PreTrainedTokenizerFast");
  for (size_t i = 0; i < GGUF_TASKS; i++) {
    const json_t *id = get(m, arena_printf(m->f->arena, "%s_token_id", gguf_tasks[i][0]));
    json_t *token = id ? json_array_get(m->tokens, (size_t)json_integer_value(id)) : NULL;
    if (token) json_object_set(config, gguf_tasks[i][1], token);
  }
  json_t *chat = json_object_get(m->meta, "tokenizer.chat_template");
  if (json_is_string(chat)) json_object_set(config, "chat_template", chat);
}

ampc_status gguf_tokenizer(Folder *f, const Loading *x)
{
  Made m = {.f = f, .meta = json_object_get(x->files[0].header, "__metadata__")};
  const char *model = json_string_value(get(&m, "model"));
  m.tokens = get(&m, "tokens");
  m.types = get(&m, "token_type");
  if (!model || strcmp(model, "none") == 0) {
    f->absent = "tokenizer";
    return AMPC_OK;
  }
  bool bytes = strcmp(model, "gpt2") == 0;
  if (!bytes && strcmp(model, "llama") != 0)
    return refuse_tokens(
        f, "model",
        arena_printf(f->arena, "is %.60s; known are gpt2 llama", arena_shown(f->arena, model, "")));
  if (!json_is_array(m.tokens)) return refuse_tokens(f, "tokens", "is missing");
  f->tokenizer = json_pack("{s:s,s:n,s:n}", "version", "1.0", "truncation", "padding");
  ampc_status status = add_tokens(&m, f->tokenizer);
  if (!status) status = bytes ? make_bytes(&m, f->tokenizer) : make_pieces(&m, f->tokenizer);
  if (!status) make_config(&m);
  json_decref(m.vocab);
  return status;
}
