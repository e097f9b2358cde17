/* The prompts of --prompts FILE: the lines of a text, or the records of a .jsonl. A record has a
 * text, "prompt", or with --chat a conversation, "messages". */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "common/file.h"
#include "common/shown.h"
#include "generate.h"
#include "runtime/data/formats/texts.h"

enum { MOST_FILE = 1 << 30, SHOWN_ROOM = 80 };

static bool is_of(const json_t *message, const char *role)
{
  const char *is = json_string_value(json_object_get(message, "role"));
  return is && strcmp(is, role) == 0;
}

/* Encodes a question after earlier turns: a record that ends with the answer before it, up to the
 * token that ends that answer, and then one more turn. */
static ampc_status add_turn(Chat *chat, json_t *earlier, const json_t *question, Ids *out)
{
  json_t *record = json_pack("{s:O}", "messages", earlier);
  char *text = record ? json_dumps(record, JSON_COMPACT) : NULL;
  ampc_status status = text ? chat_record(chat, text, strlen(text), "", out)
                            : ampc_fail(AMPC_RUN_FAILED, "out of memory for prompts");
  for (size_t i = 0; i < out->n; i++) out->at[i] &= ~(uint32_t)TEXTS_ANSWER;
  while (out->n && out->at[out->n - 1] != chat_end(chat)) out->n--;
  if (!status)
    status = chat_turn(chat, true, json_string_value(question), json_string_length(question), out);
  free(text);
  json_decref(record);
  return status;
}

static ampc_status take_messages(InferCommand *cmd, json_t *list, Ids *out)
{
  Chat *chat = cmd->text.chat;
  const size_t n = json_array_size(list);
  const json_t *first = json_array_get(list, 0), *last = n ? json_array_get(list, n - 1) : NULL;
  const json_t *question = json_object_get(last, "content");
  const json_t *begins = json_object_get(first, "content");
  const bool system = n == 2 && is_of(first, "system") && json_is_string(begins);
  if (system && strlen(json_string_value(begins)) != json_string_length(begins))
    return ampc_fail(AMPC_BAD_FILE, "the system message has a character U+0000");
  if (!chat)
    return ampc_fail(AMPC_BAD_USAGE, "\"messages\" need --chat, which puts them into a template");
  if (!is_of(last, "user") || !json_is_string(question))
    return ampc_fail(AMPC_BAD_FILE,
                     "the last message must be the user's: {\"role\": \"user\", \"content\": "
                     "TEXT}");
  if (n == 1 || system)
    return chat_prompt(chat, system ? json_string_value(begins) : NULL, json_string_value(question),
                       json_string_length(question), out);
  if (!is_of(json_array_get(list, n - 2), "assistant"))
    return ampc_fail(AMPC_BAD_FILE, "the message before the last one must be the assistant's");
  json_t *earlier = json_copy(list);
  json_array_remove(earlier, n - 1);
  ampc_status status = add_turn(chat, earlier, question, out);
  json_decref(earlier);
  return status;
}

/* Keeps the value of the record that is the prompt, to print it with the result. */
static const char *show(Arena *arena, const char *key, json_t *value)
{
  char *text = json_dumps(value, JSON_ENCODE_ANY);
  const char *shown = arena_printf(arena, "\"%s\": %s", key, text ? text : "null");
  free(text);
  return shown;
}

static ampc_status take_record(InferCommand *cmd, Arena *arena, const json_t *record, Prompt *out)
{
  json_t *prompt = json_object_get(record, "prompt"), *list = json_object_get(record, "messages");
  Ids ids = {0};
  if (prompt && list)
    return ampc_fail(AMPC_BAD_FILE, "the record has both \"prompt\" and \"messages\"");
  if (json_is_string(prompt)) {
    if (!json_string_length(prompt)) return ampc_fail(AMPC_BAD_FILE, "the prompt is empty");
    out->shown = show(arena, "prompt", prompt);
    return prompt_encode(&cmd->text, arena, json_string_value(prompt), json_string_length(prompt),
                         &out->at, &out->n);
  }
  if (prompt || !list)
    return ampc_fail(AMPC_BAD_FILE, "expected {\"prompt\": TEXT}%s",
                     cmd->chat ? " or {\"messages\": [..]}" : "");
  out->shown = show(arena, "messages", list);
  ampc_status status = take_messages(cmd, list, &ids);
  prompt_keep(arena, &ids, &out->at, &out->n);
  return status;
}

/* Reads a line, which is not empty. */
static ampc_status take_line(InferCommand *cmd, Arena *arena, bool json, const char *text, size_t n,
                             Prompt *out)
{
  char why[SHOWN_ROOM];
  json_error_t error;
  json_t *record = json ? json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error)
                        : json_pack("{s:s%}", "prompt", text, n);
  if (!record && json)
    return ampc_fail(AMPC_BAD_FILE, "column %d: %s", error.column,
                     ampc_show(why, sizeof why, error.text, ""));
  if (!record) return ampc_fail(AMPC_BAD_FILE, "the line is not UTF-8");
  ampc_status status = take_record(cmd, arena, record, out);
  json_decref(record);
  if (!status && !out->n) status = ampc_fail(AMPC_BAD_FILE, "the prompt has no tokens");
  return status;
}

static ampc_status take_lines(InferCommand *cmd, Arena *arena, const char *at, const char *end)
{
  PromptText *t = &cmd->text;
  const char *dot = strrchr(cmd->prompts, '.');
  const bool json = dot && strcasecmp(dot, ".jsonl") == 0;
  uint32_t line = 0;
  size_t lines = 1;
  for (const char *c = at; (c = memchr(c, '\n', (size_t)(end - c))); c++) lines++;
  t->each = arena_array(arena, Prompt, lines);
  if (end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) at += 3; /* a byte order mark */
  while (at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at)), *text = at;
    size_t n = (size_t)((stop ? stop : end) - at);
    at += n + (stop != NULL);
    if (n && text[n - 1] == '\r') n--;
    line++;
    if (json && strspn(text, " \t\r") >= n) continue;
    Prompt *p = &t->each[t->n_each++];
    p->line = line;
    ampc_status status = take_line(cmd, arena, json, text, n, p);
    if (status) return ampc_fail(status, "%s:%u: %s", cmd->prompts, line, ampc_last_error());
    if (p->n > t->n) t->n = p->n;
  }
  return t->n_each ? AMPC_OK : ampc_fail(AMPC_BAD_FILE, "%s has no prompts", cmd->prompts);
}

ampc_status prompts_read(InferCommand *cmd, Compile *c)
{
  char *bytes;
  int64_t n;
  const char *dot = strrchr(cmd->prompts, '.');
  if (dot && strcmp(dot, ".bin") == 0)
    return ampc_fail(AMPC_BAD_USAGE,
                     "%s: --prompts reads text; only --prompt-file reads the tokens of a .bin file",
                     cmd->prompts);
  ampc_status status = prompt_open(cmd, c, cmd->chat ? "--chat" : NULL);
  if (status) return status;
  const char *why = file_read_any(FILE_PROMPT, cmd->prompts, MOST_FILE, &bytes, &n);
  if (why) return ampc_fail(AMPC_BAD_FILE, "cannot read %s: %s", cmd->prompts, why);
  status = take_lines(cmd, c->arena, bytes, bytes + n);
  free(bytes);
  return status;
}
