/* A tokenizer.json or .model as the metadata of a GGUF file, with what files beside it say. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/file.h"
#include "folder.h"
#include "runtime/data/tokenizer/parts.h"

typedef struct Making {
  Folder *f;
  const char *path; /* of the tokenizer */
  json_t *meta, *tokens, *types, *scores;
} Making;

static ampc_status refuse(const Making *m, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE,
                   "%s: %s; `-D TOKENIZER=` writes the GGUF file without a tokenizer", m->path,
                   why);
}

static void set(const Making *m, const char *key, json_t *value)
{
  json_object_set_new(m->meta, arena_printf(m->f->arena, "tokenizer.%s", key), value);
}

/* Returns a file beside the tokenizer as JSON, or as a string; NULL: there is none. */
static json_t *beside(const Making *m, const char *name, bool json)
{
  char *folder = file_folder(m->path), *path = file_join(folder, name), *text = NULL;
  int64_t size;
  json_t *out = NULL;
  if (path && access(path, F_OK) == 0 && file_read(FILE_IMPORT, path, &text, &size) == AMPC_OK)
    out = json ? json_loadb(text, (size_t)size, 0, NULL) : json_stringn(text, (size_t)size);
  free(folder);
  free(path);
  free(text);
  return out;
}

/* ---- tokens ---- */

/* Gives an id its token. A token that is there stays, but gets the type. */
static ampc_status add_token(const Making *m, json_int_t id, const char *text, size_t n, int type)
{
  if (id < 0 || id >= (json_int_t)json_array_size(m->tokens))
    return refuse(m, arena_printf(m->f->arena, "the net has no row for token %lld", (long long)id));
  json_array_set_new(m->tokens, (size_t)id, json_stringn(text, n));
  json_array_set_new(m->types, (size_t)id, json_integer(type));
  return AMPC_OK;
}

static json_int_t id_of(const Making *m, const char *text)
{
  json_t *token;
  size_t i;
  json_array_foreach(m->tokens, i, token) if (text && strcmp(json_string_value(token), text) ==
                                                          0) return (json_int_t)i;
  return -1;
}

/* llama.cpp looks for merges of pieces by the score of what they make, so the first merge that
 * makes a token decides its score. Merges in an order that no scores give are refused. */
static ampc_status score_merges(const Making *m, const json_t *vocab, const json_t *merges)
{
  json_t *pair;
  size_t i;
  json_int_t last = -1;
  json_array_foreach(merges, i, pair)
  {
    const char *both = json_string_value(pair);
    const char *made =
        both ? arena_printf(m->f->arena, "%.*s%s", (int)strcspn(both, " "), both,
                            both + strcspn(both, " ") + (both[strcspn(both, " ")] != 0))
             : arena_printf(m->f->arena, "%s%s", json_string_value(json_array_get(pair, 0)),
                            json_string_value(json_array_get(pair, 1)));
    const json_t *id = json_object_get(vocab, made);
    size_t at = (size_t)json_integer_value(id);
    if (!id ||
        (json_integer_value(id) != last && json_real_value(json_array_get(m->scores, at)) > -1e9))
      return refuse(m, "its merges are in an order that no scores of llama.cpp give");
    last = json_integer_value(id);
    if (json_real_value(json_array_get(m->scores, at)) <= -1e9)
      json_array_set_new(m->scores, at, json_real(-(double)i));
  }
  return AMPC_OK;
}

/* ---- tokenizer.json ---- */

static ampc_status add_added(const Making *m, const json_t *root)
{
  json_t *token;
  size_t i;
  const char *lost = NULL;
  ampc_status status = AMPC_OK;
  json_array_foreach(json_object_get(root, "added_tokens"), i, token)
  {
    const json_t *text = json_object_get(token, "content");
    bool special = json_is_true(json_object_get(token, "special"));
    if (!status && text)
      status =
          add_token(m, json_integer_value(json_object_get(token, "id")), json_string_value(text),
                    json_string_length(text), special ? PIECE_control : PIECE_user);
    if (json_is_true(json_object_get(token, "lstrip")) ||
        json_is_true(json_object_get(token, "rstrip")) ||
        json_is_true(json_object_get(token, "single_word")))
      lost = json_string_value(text);
  }
  if (lost)
    fprintf(stderr,
            "warning: %s: GGUF has no lstrip, rstrip and single_word, which %s and maybe others "
            "have\n",
            m->path, arena_shown(m->f->arena, lost, ""));
  return status;
}

/* Whether a template puts tokens before and after a text, and which. */
static void add_ends(const Making *m, const json_t *processor)
{
  const json_t *single = json_object_get(processor, "single");
  static const char *const keys[] = {"bos", "eos"};
  json_t *inner;
  size_t i, n = json_array_size(single);
  json_array_foreach(json_object_get(processor, "processors"), i, inner) add_ends(m, inner);
  for (int end = 0; end < 2 && n; end++) {
    const json_t *token = json_object_get(json_array_get(single, end ? n - 1 : 0), "SpecialToken");
    if (!token) continue;
    set(m, arena_printf(m->f->arena, "ggml.add_%s_token", keys[end]), json_true());
    set(m, arena_printf(m->f->arena, "ggml.%s_token_id", keys[end]),
        json_integer(id_of(m, json_string_value(json_object_get(token, "id")))));
  }
}

static ampc_status read_json(const Making *m, const json_t *root)
{
  const json_t *model = json_object_get(root, "model"), *vocab = json_object_get(model, "vocab");
  const json_t *merges = json_object_get(model, "merges");
  const char *word, *why = gguf_tokenizer_kind(m->f, root, m->meta), *unknown;
  json_t *id, *pair;
  size_t i;
  if (why) return refuse(m, arena_printf(m->f->arena, "GGUF has no name for its `%s`", why));
  bool pieces = json_is_true(json_object_get(model, "byte_fallback"));
  unknown = json_string_value(json_object_get(model, "unk_token"));
  ampc_status status = AMPC_OK;
  json_object_foreach((json_t *)(uintptr_t)vocab, word, id)
  {
    bool byte = pieces && strlen(word) == 6 && strncmp(word, "<0x", 3) == 0;
    if (!status)
      status = add_token(m, json_integer_value(id), word, strlen(word),
                         byte ? PIECE_byte : PIECE_normal);
  }
  if (!status) status = add_added(m, root);
  if (status) return status;
  set(m, "ggml.add_bos_token", json_false());
  set(m, "ggml.add_eos_token", json_false());
  add_ends(m, json_object_get(root, "post_processor"));
  if (pieces && unknown) {
    set(m, "ggml.unknown_token_id", json_integer(id_of(m, unknown)));
    json_array_set_new(m->types, (size_t)id_of(m, unknown), json_integer(PIECE_unknown));
  }
  if (pieces) return score_merges(m, vocab, merges);
  json_t *list = json_array();
  json_array_foreach(merges, i, pair) json_array_append_new(
      list, json_is_string(pair) ? json_incref(pair)
                                 : json_sprintf("%s %s", json_string_value(json_array_get(pair, 0)),
                                                json_string_value(json_array_get(pair, 1))));
  set(m, "ggml.merges", list);
  return AMPC_OK;
}

/* ---- a .model of sentencepiece ---- */

static ampc_status read_model(const Making *m, const char *bytes, size_t size)
{
  Tokenizer *t;
  ampc_status status = tokenizer_read(m->path, bytes, size, &t);
  if (status) return status;
  bool bpe = t->merge_ids || t->ranks;
  if (!bpe || t->trim_blanks) {
    tokenizer_close(t);
    return refuse(m, bpe ? "GGUF cannot say that it removes blanks" : "it is no BPE");
  }
  for (uint32_t i = 0; i < t->n_tokens && !status; i++) {
    const Token *token = &t->token[i];
    if (token->text.at) status = add_token(m, i, token->text.at, token->text.n, token->piece);
    if (!status) json_array_set_new(m->scores, i, json_real(token->score));
    if (token->piece == PIECE_unknown) set(m, "ggml.unknown_token_id", json_integer(i));
  }
  set(m, "ggml.model", json_string("llama"));
  set(m, "ggml.add_space_prefix", json_boolean(t->dummy_prefix));
  tokenizer_close(t);
  return status;
}

/* ---- beside the tokenizer ---- */

/* The ids of tokens with a task, and the template of chats. */
static void read_config(const Making *m)
{
  static const char *const keys[][2] = {
      {"bos", "bos"}, {"eos", "eos"}, {"pad", "padding"}, {"unk", "unknown"}};
  json_t *config = beside(m, "tokenizer_config.json", true), *net = beside(m, "config.json", true);
  json_t *template = beside(m, "chat_template.jinja", false), *one;
  size_t i;
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
    const json_t *token =
        json_object_get(config, arena_printf(m->f->arena, "%s_token", keys[k][0]));
    const json_t *given =
        json_object_get(net, arena_printf(m->f->arena, "%s_token_id", keys[k][0]));
    if (json_is_array(given)) given = json_array_get(given, 0);
    if (json_is_object(token)) token = json_object_get(token, "content");
    json_int_t id = id_of(m, json_string_value(token));
    if (id < 0 && json_is_integer(given)) id = json_integer_value(given);
    if (id >= 0 && id < (json_int_t)json_array_size(m->tokens))
      set(m, arena_printf(m->f->arena, "ggml.%s_token_id", keys[k][1]), json_integer(id));
  }
  const json_t *own = json_object_get(config, "chat_template");
  json_array_foreach(own, i, one)
  {
    const char *name = json_string_value(json_object_get(one, "name"));
    if (name && strcmp(name, "default") == 0) own = json_object_get(one, "template");
  }
  if (!template && json_is_string(own)) template = json_deep_copy(own);
  if (template) set(m, "chat_template", template);
  if (!json_object_get(m->meta, "tokenizer.ggml.eos_token_id"))
    fprintf(stderr,
            "warning: no tokenizer_config.json or config.json beside %s names the token that ends "
            "a text, so llama.cpp takes the one of its own models\n",
            m->path);
  json_decref(config);
  json_decref(net);
}

ampc_status gguf_add_tokenizer(Folder *f, const char *path, int64_t vocabulary, json_t *meta)
{
  Making m = {f, path, meta, json_array(), json_array(), json_array()};
  char *text = NULL;
  int64_t size = 0;
  ampc_status status = file_read(FILE_DATA, path, &text, &size);
  for (int64_t i = 0; i < vocabulary; i++) {
    json_array_append_new(m.tokens, json_sprintf("[PAD%lld]", (long long)i));
    json_array_append_new(m.types, json_integer(PIECE_unused));
    json_array_append_new(m.scores, json_real(-1e9));
  }
  json_t *root =
      status || *text != '{' ? NULL : json_loadb(text, (size_t)size, JSON_ALLOW_NUL, NULL);
  if (!status) status = root ? read_json(&m, root) : read_model(&m, text, (size_t)size);
  if (!status) read_config(&m);
  set(&m, "ggml.tokens", m.tokens);
  set(&m, "ggml.token_type", m.types);
  if (strcmp(json_string_value(json_object_get(meta, "tokenizer.ggml.model"))
                 ? json_string_value(json_object_get(meta, "tokenizer.ggml.model"))
                 : "",
             "llama") == 0)
    set(&m, "ggml.scores", m.scores);
  else
    json_decref(m.scores);
  json_decref(root);
  free(text);
  return status;
}
