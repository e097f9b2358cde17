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
  const Tokenizer *t;
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

static void set_id(const Making *m, const char *task, int64_t id)
{
  set(m, arena_printf(m->f->arena, "ggml.%s_token_id", task), json_integer(id));
}

/* ---- the tokenizer ---- */

static ampc_status list_tokens(const Making *m, int64_t vocabulary)
{
  const Tokenizer *t = m->t;
  json_t *token;
  size_t k;
  const char *lost = NULL;
  if (t->n_tokens > vocabulary)
    return refuse(m, arena_printf(m->f->arena, "it has %u tokens, but the net has %lld",
                                  t->n_tokens, (long long)vocabulary));
  for (uint32_t i = 0; i < vocabulary; i++) {
    char pad[20]; /* the name of an id without a token, also in files that were imported */
    size_t n = (size_t)snprintf(pad, sizeof pad, "[PAD%u]", i);
    const Token *own = i < t->n_tokens && t->token[i].text.at ? &t->token[i] : NULL;
    if (own && own->text.n == n && memcmp(own->text.at, pad, n) == 0) own = NULL;
    int type = !own ? PIECE_unused : t->pieces ? own->piece : PIECE_normal;
    json_array_append_new(m->tokens,
                          own ? json_stringn(own->text.at, own->text.n) : json_string(pad));
    json_array_append_new(m->types, json_integer(i == t->unk ? PIECE_unknown : type));
    json_array_append_new(m->scores, json_real(own && t->pieces ? own->score : -1e9));
  }
  for (int b = 0; b < 256; b++)
    if (t->byte_id[b] != NO_ID && t->model.byte_fallback)
      json_array_set_new(m->types, t->byte_id[b], json_integer(PIECE_byte));
  json_array_foreach(json_object_get(t->root, "added_tokens"), k, token)
  {
    size_t id = (size_t)json_integer_value(json_object_get(token, "id"));
    const Added *a = &t->token[id].added;
    if (a->left || a->right || a->single_word) lost = t->token[id].text.at;
    if (id != t->unk)
      json_array_set_new(m->types, id, json_integer(a->special ? PIECE_control : PIECE_user));
  }
  if (lost)
    fprintf(stderr, "warning: %s: %s has lstrip, rstrip or single_word, which GGUF has not\n",
            m->path, arena_shown(m->f->arena, lost, ""));
  return AMPC_OK;
}

/* llama.cpp looks for merges of pieces by the score of what they make, so the first merge that
 * makes a token decides its score. Merges in an order that no scores give are refused. */
static ampc_status score_merges(const Making *m)
{
  const uint32_t *made = m->t->merge_ids;
  double score = 0;
  for (size_t i = 0; i < json_array_size(m->t->model.merges); i++) {
    bool first = json_real_value(json_array_get(m->scores, made[i])) <= -1e9;
    if (first)
      json_array_set_new(m->scores, made[i], json_real(score--));
    else if (made[i] != made[i - 1] && /* tokens of the user are found before merges */
             json_integer_value(json_array_get(m->types, made[i])) == PIECE_normal)
      return refuse(m, "its merges are in an order that no scores of llama.cpp give");
  }
  return AMPC_OK;
}

static void list_merges(const Making *m)
{
  json_t *list = json_array(), *pair;
  size_t i;
  json_array_foreach(m->t->model.merges, i, pair)
  {
    const char *left = json_string_value(json_array_get(pair, 0));
    json_array_append_new(
        list, left ? json_sprintf("%s %s", left, json_string_value(json_array_get(pair, 1)))
                   : json_incref(pair));
  }
  set(m, "ggml.merges", list);
}

static ampc_status add_tokenizer(const Making *m, int64_t vocabulary)
{
  const Tokenizer *t = m->t;
  const char *why = t->pieces ? !t->ranks        ? "model"
                                : t->trim_blanks ? "normalizer"
                                                 : NULL
                              : gguf_tokenizer_kind(m->f, t->root, m->meta);
  if (why || t->before.n > 1 || t->after.n > 1)
    return refuse(
        m, arena_printf(m->f->arena, "GGUF cannot express its `%s`", why ? why : "post_processor"));
  if (t->pieces) {
    set(m, "ggml.model", json_string("llama"));
    set(m, "ggml.add_space_prefix", json_boolean(t->dummy_prefix));
  }
  ampc_status status = list_tokens(m, vocabulary);
  if (status) return status;
  if (!t->pieces) {
    set(m, "ggml.add_bos_token", json_boolean(t->before.n));
    set(m, "ggml.add_eos_token", json_boolean(t->after.n));
  }
  if (t->before.n) set_id(m, "bos", t->before.at[0]);
  if (t->after.n) set_id(m, "eos", t->after.at[0]);
  if (t->unk != NO_ID) set_id(m, "unknown", t->unk);
  set(m, "ggml.tokens", json_incref(m->tokens));
  set(m, "ggml.token_type", json_incref(m->types));
  if (t->pieces || t->model.byte_fallback) set(m, "ggml.scores", json_incref(m->scores));
  if (!t->pieces && t->model.byte_fallback) return score_merges(m);
  if (!t->pieces) list_merges(m);
  return AMPC_OK;
}

/* ---- beside the tokenizer ---- */

/* Returns a file beside the tokenizer; NULL: there is none. The caller frees it. */
static char *beside(const Making *m, const char *name)
{
  char *folder = file_folder(m->path), *path = file_join(folder, name), *text = NULL;
  int64_t size;
  if (path && access(path, F_OK) == 0 && file_read(FILE_DATA, path, &text, &size)) text = NULL;
  free(folder);
  free(path);
  return text;
}

/* The ids of tokens with a task, and the template of chats. */
static void read_tokenizer_config(const Making *m)
{
  char *text = beside(m, "tokenizer_config.json"), *chat = beside(m, "chat_template.jinja");
  json_t *config = text ? json_loads(text, 0, NULL) : NULL, *one;
  const json_t *own = json_object_get(config, "chat_template");
  size_t i;
  for (size_t k = 0; k < GGUF_TASKS; k++) {
    const json_t *token = json_object_get(config, gguf_tasks[k][1]);
    if (json_is_object(token)) token = json_object_get(token, "content");
    uint32_t id =
        token ? tokenizer_id(m->t, json_string_value(token), json_string_length(token)) : NO_ID;
    if (id != NO_ID) set_id(m, gguf_tasks[k][0], id);
  }
  json_array_foreach(own, i, one)
  {
    const char *name = json_string_value(json_object_get(one, "name"));
    if (name && strcmp(name, "default") == 0) own = json_object_get(one, "template");
  }
  if (chat || json_is_string(own))
    set(m, "chat_template", chat ? json_string(chat) : json_deep_copy(own));
  if (!json_object_get(m->meta, "tokenizer.ggml.eos_token_id"))
    fprintf(stderr,
            "warning: no tokenizer_config.json beside %s names the token that ends a text; "
            "llama.cpp takes that of another net\n",
            m->path);
  json_decref(config);
  free(text);
  free(chat);
}

ampc_status gguf_add_tokenizer(Folder *f, const char *path, int64_t vocabulary, json_t *meta)
{
  Tokenizer *t;
  ampc_status status = tokenizer_open(path, &t);
  if (status) return status;
  Making m = {f, path, t, meta, json_array(), json_array(), json_array()};
  status = add_tokenizer(&m, vocabulary);
  if (!status) read_tokenizer_config(&m);
  json_decref(m.tokens);
  json_decref(m.types);
  json_decref(m.scores);
  tokenizer_close(t);
  return status;
}
