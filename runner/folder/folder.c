/* A folder of Hugging Face as a job: finds its files, and writes the text of its family with other
 * constants. */
#include "folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/file.h"

static bool is_gguf(const char *path)
{
  struct stat info;
  char head[4] = "";
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  int fd = file_open_input(FILE_WEIGHTS, path, 0);
  bool read = fd >= 0 && file_read_at(path, fd, 0, sizeof head, head) == AMPC_OK;
  if (fd >= 0) file_close_input(FILE_WEIGHTS, path, fd);
  return read && memcmp(head, "GGUF", sizeof head) == 0;
}

bool folder_is_model(const char *path)
{
  struct stat info;
  return (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) || is_gguf(path);
}

/* ---- the files ---- */

static const char *file_in(const Folder *f, const char *name)
{
  char *path = file_join(f->path, name);
  const char *out = path ? arena_strdup(f->arena, path) : NULL;
  free(path);
  return out && access(out, F_OK) == 0 ? out : NULL;
}

/* Reads a file of the folder; *out NULL: there is none. `lines`: also its text, for messages. */
static ampc_status read_json(Folder *f, const char *name, json_t **out, const char **lines)
{
  char *text = NULL;
  int64_t size;
  json_error_t error;
  const char *path = file_in(f, name);
  *out = NULL;
  ampc_status status = path ? file_read(FILE_IMPORT, path, &text, &size) : AMPC_OK;
  if (status || !path) return status;
  if (lines) *lines = arena_strdup(f->arena, text);
  *out = json_loadb(text, (size_t)size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
  free(text);
  if (*out) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "%s:%d: no JSON: %s", path, error.line,
                   arena_shown(f->arena, error.text, ""));
}

static ampc_status read_config(Folder *f)
{
  f->config = file_in(f, "config.json");
  if (f->config) return read_json(f, "config.json", &f->root, &f->lines);
  return ampc_fail(AMPC_BAD_FILE, "%s has no config.json, so it is no model of Hugging Face",
                   f->path);
}

static void find_weights(Folder *f)
{
  static const char *const names[] = {"model.safetensors", "model.safetensors.index.json",
                                      "pytorch_model.bin", "pytorch_model.bin.index.json"};
  f->absent = "";
  for (int i = 0; i < 4 && !f->weights; i++) f->weights = file_in(f, names[i]);
  if (!f->weights)
    f->absent = "model.safetensors or model.safetensors.index.json, which a run needs";
  if (!file_in(f, "tokenizer.json"))
    f->absent =
        arena_printf(f->arena, "%s%stokenizer.json", f->absent, *f->absent ? "; and no " : "");
}

/* ---- encoders ---- */

/* The token that stands for a hidden one. */
static ampc_status find_mask(Folder *f)
{
  json_t *root, *token;
  size_t i;
  ampc_status status = read_json(f, "tokenizer.json", &root, NULL);
  if (!root) {
    f->absent = arena_printf(f->arena, "%s, so the token MASK is a guess", f->absent);
    return status;
  }
  json_array_foreach(json_object_get(root, "added_tokens"), i, token)
  {
    const char *content = json_string_value(json_object_get(token, "content"));
    if (content && (strcmp(content, "[MASK]") == 0 || strcmp(content, "<mask>") == 0))
      setting_add(f, "MASK",
                  arena_printf(f->arena, "%lld",
                               (long long)json_integer_value(json_object_get(token, "id"))));
  }
  json_decref(root);
  if (setting_of(f, "MASK")) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "%s: tokenizer.json has no token [MASK] or <mask>", f->path);
}

/* Reads how sentence-transformers makes a vector of the hidden states: flags, or a word. */
static ampc_status read_pooling(Folder *f)
{
  json_t *root, *value;
  const char *key, *mode = "";
  uint32_t n = 0;
  ampc_status status = read_json(f, "1_Pooling/config.json", &root, NULL);
  json_object_foreach(root, key, value)
  {
    bool word = strcmp(key, "pooling_mode") == 0;
    if (!word && (strncmp(key, "pooling_mode_", 13) != 0 || !json_is_true(value))) continue;
    mode = arena_strdup(f->arena, !word                   ? key + 13
                                  : json_is_string(value) ? json_string_value(value)
                                                          : "?");
    n++;
  }
  json_decref(root);
  bool cls = is_word("cls cls_token", mode);
  if (status) return status;
  if (n != 1 || (!cls && !is_word("mean mean_tokens", mode)))
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s: the pooling \"%s\" of 1_Pooling/config.json is not known; cls and mean are", f->path,
        arena_shown(f->arena, mode, ""));
  setting_add(f, "POOLING", cls ? "\"cls\"" : "\"mean\"");
  return AMPC_OK;
}

/* What sentence-transformers does after the net, if the folder is one of its nets. */
static ampc_status find_modules(Folder *f)
{
  json_t *list, *value;
  size_t i;
  bool normalizes = false, pools = false;
  ampc_status status = read_json(f, "modules.json", &list, NULL);
  if (!list) return status;
  json_array_foreach(list, i, value)
  {
    const char *type = json_string_value(json_object_get(value, "type"));
    const char *last = type && strrchr(type, '.') ? strrchr(type, '.') + 1 : "?";
    normalizes = normalizes || strcmp(last, "Normalize") == 0;
    pools = pools || strcmp(last, "Pooling") == 0;
    if (!is_word("Transformer Pooling Normalize", last))
      status = ampc_fail(AMPC_BAD_FILE,
                         "%s: modules.json has a %s; Transformer, Pooling and Normalize are known",
                         f->path, arena_shown(f->arena, type ? type : last, ""));
  }
  json_decref(list);
  setting_add(f, "NORMALIZE", normalizes ? "true" : "false");
  return status || !pools ? status : read_pooling(f);
}

/* What the files say; `x` has the names of the tensors if there are weights. */
static ampc_status read_all(Folder *f, const Loading *x, const char *job_folder)
{
  ampc_status status = f->gguf ? gguf_config(f, x) : AMPC_OK;
  if (!status) status = config_read(f);
  if (!status && f->family->encoder) status = find_mask(f);
  if (!status && f->family->encoder) status = find_modules(f);
  if (status) return status;
  if (f->weights) weights_settings(f, x, job_folder);
  if (f->gguf) status = gguf_tokenizer(f, x);
  const char *tokenizer = f->gguf ? NULL : file_in(f, "tokenizer.json");
  if (tokenizer) setting_add(f, "TOKENIZER", path_code(f->arena, tokenizer, job_folder));
  return status;
}

ampc_status folder_open(Arena *arena, const char *path, const char *job_folder, Folder *out)
{
  *out = (Folder){.arena = arena, .path = path, .config = path, .absent = ""};
  out->gguf = is_gguf(path);
  ampc_status status = AMPC_OK;
  json_t *text = json_string(path);
  if (!text) status = ampc_fail(AMPC_BAD_FILE, "a path is not UTF-8, as jobs are");
  json_decref(text);
  if (status) return status;
  if (out->gguf)
    out->weights = path;
  else
    status = read_config(out);
  if (!status && !out->gguf) find_weights(out);
  Loading x = {.path = (char *)(uintptr_t)out->weights};
  if (!status && x.path) status = load_files_open(&x);
  if (!status) status = read_all(out, &x, job_folder);
  load_files_close(&x);
  return status;
}

void folder_close(Folder *f)
{
  json_decref(f->root);
  json_decref(f->tokenizer);
  json_decref(f->tokenizer_config);
}

/* ---- the text ---- */

/* Writes a line `const NAME = VALUE   # comment` with another value. False: it is no such line, or
 * there is no other value. */
static bool put_constant(Folder *f, Text *t, const char *line, size_t n)
{
  enum { COLUMN = 60 };
  static const char begin[] = "const ";
  const char *name = line + sizeof begin - 1, *comment = memmem(line, n, "  #", 3);
  if (strncmp(line, begin, sizeof begin - 1) != 0) return false;
  const char *code = setting_of(f, arena_strndup(f->arena, name, strcspn(name, " ")));
  if (!code) return false;
  const char *made = arena_printf(f->arena, "const %.*s = %s", (int)strcspn(name, " "), name, code);
  while (comment && comment < line + n && *comment == ' ') comment++;
  if (comment)
    text_printf(t, "%-*s%s%.*s\n", COLUMN, made, strlen(made) < COLUMN ? "" : "  ",
                (int)(line + n - comment), comment);
  else
    text_printf(t, "%s\n", made);
  return true;
}

/* The second line of a text says where its numbers come from. */
const char *folder_job(Folder *f)
{
  Text t = text_new(f->arena);
  int number = 0;
  for (const char *line = f->family->text; *line; number++) {
    size_t n = strcspn(line, "\n");
    if (number == 1)
      text_printf(&t, "# `amp import` wrote this text; its numbers are those of %s.\n",
                  arena_shown(f->arena, f->config, ""));
    else if (!put_constant(f, &t, line, n))
      text_printf(&t, "%.*s\n", (int)n, line);
    line += n + (line[n] == '\n');
  }
  return t.at;
}
