/* Chats as ids. A record becomes a list of parts, those of the template and the contents of the
 * messages, which the tokenizer encodes as one text. A content has no special tokens, whatever
 * people write in it; only the template has. */
#include "chat.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "common/shown.h"
#include "runtime/data/formats/args.h"
#include "runtime/data/formats/texts.h"
#include "runtime/data/tokenizer/strings.h"

/* ---- templates ---- */

enum { TRIM_answer = 1, TRIM_all = 2, TURNS = 4, INSIDE = 8, OPEN = 16, CLOSE = 32 };
typedef enum Role { ROLE_system, ROLE_user, ROLE_answer, ROLES } Role;
static const char *const role_names[] = {"system", "user", "assistant"};

typedef struct ChatTemplate {
  const char *name, *begin, *role[ROLES];
  unsigned flags;
} ChatTemplate;
static const ChatTemplate templates[] = {
#define TEMPLATE(name, begin, system, user, answer, flags)                                         \
  {#name, begin, {system, user, answer}, flags},
#include "templates.def"
#undef TEMPLATE
};
enum { TEMPLATES = sizeof templates / sizeof *templates, NAMES_ROOM = 100 };
/* Tokens that end a text. A template with CLOSE takes the only one that the tokenizer has. */
static const char *const ends[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]"};

typedef struct TemplatePart {
  Span before, after;
} TemplatePart;

struct Chat {
  Tokenizer *t;
  const char *name; /* of the template, or NULL */
  unsigned flags;
  Span begin;
  TemplatePart role[ROLES];
  char *owned; /* a text of the job */
  Ids open;    /* what the tokenizer adds before a text */
  uint32_t end;
  Span close; /* what follows an answer, from the token `end` on */
  TextPart *part;
  size_t n, cap;
  size_t answers; /* of a record */
};

static ampc_status no_memory(void)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for a chat");
}

static ampc_status find_end(const Tokenizer *t, const char *name, Span *out)
{
  size_t found = 0;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    Span end = {ends[i], strlen(ends[i])};
    if (tokenizer_id(t, end.at, end.n) == UINT32_MAX) continue;
    *out = end;
    found++;
  }
  if (found == 1) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE,
                   "%s has %s token that ends a text: write a template that names it, such as "
                   "template=\"{prompt}{answer}<|endoftext|>\"",
                   name, found ? "more than one" : "no usual");
}

/* Cuts a text of the template where {} stands. */
static TemplatePart cut(const char *text)
{
  const char *at = text ? strstr(text, "{}") : NULL;
  if (!at) return (TemplatePart){{0}, {0}};
  return (TemplatePart){{text, (size_t)(at - text)}, {at + 2, strlen(at + 2)}};
}

/* Refuses words in <>, or of a text of the job in <||>, that are not tokens. */
static ampc_status check_tokens(const Chat *c, const char *name, Span text)
{
  for (size_t i = 0; i < text.n; i++) {
    size_t n = 1;
    if (text.at[i] != '<' || (!c->name && (i + 1 == text.n || text.at[i + 1] != '|'))) continue;
    while (i + n < text.n && text.at[i + n] > ' ' && text.at[i + n - 1] != '>') n++;
    if (text.at[i + n - 1] != '>') continue;
    Ids ids = {0};
    TextPart one = {.at = text.at + i, .n = n};
    uint32_t id = tokenizer_id(c->t, one.at, n);
    ampc_status status = tokenizer_encode_parts(c->t, &one, 1, &ids);
    bool good = ids.n == 1 && ids.at[0] == id;
    free(ids.at);
    if (status) return status;
    if (good) continue;
    return ampc_fail(AMPC_BAD_FILE, "%s has no token %.*s, which %s%s needs", name, (int)n, one.at,
                     c->name ? "the template " : "your template", c->name ? c->name : "");
  }
  return AMPC_OK;
}

/* Reads a text of the job: what stands before {answer} is the user's. */
static ampc_status read_own(Chat *c, const char *text)
{
  const char *prompt = strstr(text, "{prompt}"), *answer = strstr(text, "{answer}");
  char names[NAMES_ROOM] = "";
  for (size_t i = 0; i < TEMPLATES; i++) strcat(strcat(names, i ? ", " : ""), templates[i].name);
  if (!prompt || !answer || answer < prompt || strstr(prompt + 1, "{prompt}") ||
      strstr(answer + 1, "{answer}"))
    return ampc_fail(AMPC_BAD_USAGE,
                     "template \"%s\" is none of %s, and no text with {prompt} and then {answer}",
                     text, names);
  for (const char *at = text; (at = strchr(at, '{')); at++)
    if (at != prompt && at != answer && strchr(at, '}') &&
        strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_") + 1 == (size_t)(strchr(at, '}') - at))
      return ampc_fail(AMPC_BAD_USAGE,
                       "template \"%s\": %.*s is not known; {prompt} and {answer} are", text,
                       (int)(strchr(at, '}') - at) + 1, at);
  if (!(c->owned = strdup(text))) return no_memory();
  for (char *at = c->owned; *at; at++)
    if (*at == '\r') *at = '\n';
  const size_t before = (size_t)(prompt - text), all = (size_t)(answer - text), named = 8;
  c->role[ROLE_user] =
      (TemplatePart){{c->owned, before}, {c->owned + before + named, all - before - named}};
  c->role[ROLE_answer] = (TemplatePart){{"", 0}, {c->owned + all + named, strlen(answer) - named}};
  c->flags = OPEN;
  return AMPC_OK;
}

static ampc_status read_named(Chat *c, const char *tokenizer, const ChatTemplate *row)
{
  c->name = row->name;
  c->flags = row->flags;
  c->begin = (Span){row->begin, strlen(row->begin)};
  for (Role r = 0; r < ROLES; r++) c->role[r] = cut(row->role[r]);
  return c->flags & CLOSE ? find_end(c->t, tokenizer, &c->role[ROLE_answer].after) : AMPC_OK;
}

/* Leaves out the blanks at the end, and with `begin` at the beginning, as Python's strip does. */
static Span trimmed(Span s, bool begin)
{
  size_t size = 1, last;
  for (; begin && s.n; s.at += size, s.n -= size) {
    int32_t c = char_at(s.at, s.n, &size);
    if (!is_blank(c) && (c < 0x1c || c > 0x1f)) break;
  }
  for (; s.n; s.n = last) {
    for (last = s.n - 1; last && (s.at[last] & 0xc0) == 0x80;) last--;
    int32_t c = char_at(s.at + last, s.n - last, &size);
    if (!is_blank(c) && (c < 0x1c || c > 0x1f)) break;
  }
  return s;
}

/* Finds the token after an answer, which ends in > or ], and what the tokenizer adds before a
 * text. */
static ampc_status find_added(Chat *c)
{
  Span after = trimmed(c->role[ROLE_answer].after, true);
  for (size_t n = 1; n <= after.n && c->end == UINT32_MAX; n++)
    if (strchr(">]", after.at[n - 1])) c->end = tokenizer_id(c->t, after.at, n);
  c->close = c->role[ROLE_answer].after;
  if (after.n) c->close.n -= (size_t)(after.at - c->close.at), c->close.at = after.at;
  return c->flags & OPEN ? tokenizer_encode_piece(c->t, "", 0, ENCODE_before, &c->open) : AMPC_OK;
}

ampc_status chat_open(Tokenizer *t, const char *name, const char *text, Chat **out)
{
  Chat *c = *out = calloc(1, sizeof *c);
  if (!c) return no_memory();
  c->t = t;
  c->end = UINT32_MAX;
  const ChatTemplate *row = NULL;
  for (size_t i = 0; i < TEMPLATES; i++)
    if (strcmp(templates[i].name, text) == 0) row = &templates[i];
  ampc_status status = row ? read_named(c, name, row) : read_own(c, text);
  if (!status) status = check_tokens(c, name, c->begin);
  for (Role r = 0; r < ROLES && !status; r++) {
    status = check_tokens(c, name, c->role[r].before);
    if (!status) status = check_tokens(c, name, c->role[r].after);
  }
  if (!status) status = find_added(c);
  if (!status) return AMPC_OK;
  chat_close(c);
  *out = NULL;
  return status;
}

void chat_close(Chat *c)
{
  if (!c) return;
  free(c->owned);
  free(c->open.at);
  free(c->part);
  free(c);
}

uint32_t chat_end(const Chat *c)
{
  return c->end;
}

/* ---- parts ---- */

static ampc_status add_part(Chat *c, Span text, bool plain, bool placed)
{
  if (!grow(&c->part, &c->cap, c->n + 1, sizeof *c->part)) return no_memory();
  c->part[c->n++] =
      (TextPart){.at = text.n ? text.at : "", .n = text.n, .plain = plain, .placed = placed};
  return AMPC_OK;
}

/* Adds a message. The answer and the token that ends it are what the loss counts, without blanks
 * after that token: two parts are placed, the answer and what follows. */
static ampc_status add_message(Chat *c, Role role, Span inside, Span content)
{
  bool answer = role == ROLE_answer;
  const TemplatePart *t = &c->role[role];
  Span end = answer ? trimmed(t->after, false) : t->after;
  if (c->flags & TRIM_all || (answer && c->flags & TRIM_answer)) content = trimmed(content, true);
  if (answer && !content.n) return ampc_fail(AMPC_BAD_FILE, "an answer is empty");
  ampc_status status = add_part(c, t->before, false, false);
  if (!status && inside.n) status = add_part(c, inside, true, false);
  if (!status && inside.n) status = add_part(c, c->role[ROLE_system].after, false, false);
  if (!status) status = add_part(c, content, true, answer);
  if (!status) status = add_part(c, end, false, false);
  if (status || !answer) return status;
  return add_part(c, (Span){end.at + end.n, t->after.n - end.n}, false, true);
}

static ampc_status begin_parts(Chat *c)
{
  c->n = c->answers = 0;
  return add_part(c, c->begin, false, false);
}

/* Encodes the parts, after what the tokenizer adds before a text, unless they begin with that. */
static ampc_status encode(Chat *c, Ids *out)
{
  size_t from = out->n, n = c->open.n;
  ampc_status status = tokenizer_encode_parts(c->t, c->part, c->n, out);
  if (status || !n || (out->n - from >= n && memcmp(out->at + from, c->open.at, n * 4) == 0))
    return status;
  for (size_t i = 0; i < n && !status; i++) status = tokenizer_append(out, 0);
  if (status) return status;
  memmove(out->at + from + n, out->at + from, (out->n - from - n) * sizeof *out->at);
  memcpy(out->at + from, c->open.at, n * sizeof *out->at);
  for (size_t i = 0; i < c->n; i++) c->part[i].first += n;
  return AMPC_OK;
}

/* ---- records ---- */

typedef struct Record {
  Chat *c;
  Span system; /* of a template with INSIDE: waits for the user's message */
  size_t messages;
  Role last; /* of user and assistant */
} Record;

static ampc_status take_message(Record *r, Role role, Span content)
{
  Chat *c = r->c;
  Span inside = r->system;
  const char *template = c->name ? c->name : "of the job";
  bool first = r->messages++ == 0;
  if (role == ROLE_system && !first)
    return ampc_fail(AMPC_BAD_FILE, "a message of the role system is not the first one");
  if (role == ROLE_system && !c->role[role].before.at)
    return ampc_fail(AMPC_BAD_FILE, "template %s has no role system: put the text into the prompt",
                     template);
  if (role == ROLE_system && c->flags & INSIDE) {
    r->system = content;
    return AMPC_OK;
  }
  if (role == ROLE_system) return add_message(c, role, (Span){0}, content);
  bool turn = role == ROLE_user ? r->last != ROLE_user : r->last == ROLE_user;
  if (!turn && (!c->name || c->flags & TURNS))
    return ampc_fail(AMPC_BAD_FILE,
                     "in template %s messages of user and assistant take turns, and a user begins",
                     template);
  r->last = role;
  r->system = (Span){0};
  c->answers += role == ROLE_answer;
  return add_message(c, role, inside, content);
}

/* Adds the question of a user, and what the template has before its answer. */
static ampc_status add_question(Chat *c, const char *system, const char *prompt, size_t n)
{
  Record r = {.c = c};
  ampc_status status = AMPC_OK;
  Span before = c->role[ROLE_answer].before;
  while (before.n && before.at[before.n - 1] == ' ') before.n--; /* it is of the answer's token */
  if (system) status = take_message(&r, ROLE_system, (Span){system, strlen(system)});
  if (!status) status = take_message(&r, ROLE_user, (Span){prompt, n});
  return status ? status : add_part(c, before, false, false);
}

ampc_status chat_prompt(Chat *c, const char *system, const char *prompt, size_t n, Ids *out)
{
  ampc_status status = begin_parts(c);
  if (!status) status = add_question(c, system, prompt, n);
  return status ? status : encode(c, out);
}

/* Encodes the turn after the token that ends an answer, so that the turn does not begin a text. */
ampc_status chat_turn(Chat *c, bool ended, const char *prompt, size_t n, Ids *out)
{
  const size_t from = out->n;
  c->n = c->answers = 0;
  ampc_status status = add_part(c, c->close, false, false);
  if (!status) status = add_question(c, NULL, prompt, n);
  if (!status) status = tokenizer_encode_parts(c->t, c->part, c->n, out);
  if (status || !ended) return status;
  if (c->end == UINT32_MAX || out->n == from || out->at[from] != c->end)
    return ampc_fail(AMPC_BAD_USAGE, "the template has no special token that ends an answer");
  out->n--;
  memmove(out->at + from, out->at + from + 1, (out->n - from) * sizeof *out->at);
  return AMPC_OK;
}

/* The keys of a record of one prompt. */
static const struct {
  const char *name;
  Role role;
} keys[] = {{"system", ROLE_system},    {"prompt", ROLE_user},   {"question", ROLE_user},
            {"instruction", ROLE_user}, {"answer", ROLE_answer}, {"completion", ROLE_answer},
            {"response", ROLE_answer},  {"output", ROLE_answer}};
enum { KEYS = sizeof keys / sizeof *keys, SHOWN_ROOM = 80 };

static bool is_ignored(const char *args, const char *key)
{
  int n;
  for (const char *at = args_next(args, "ignore", NULL, &n); at;
       at = args_next(args, "ignore", at, &n))
    if (strlen(key) == (size_t)n && memcmp(at, key, (size_t)n) == 0) return true;
  return false;
}

static ampc_status unknown(const char *what, const char *name, const char *cure)
{
  char shown[SHOWN_ROOM];
  return ampc_fail(AMPC_BAD_FILE, "%s \"%s\" is not known%s", what,
                   ampc_show(shown, sizeof shown, name, ""), cure);
}

static Span text_of(const json_t *value)
{
  return (Span){json_string_value(value), json_string_length(value)};
}

static ampc_status take_prompt(Record *r, json_t *record, const char *args)
{
  const char *key;
  json_t *value, *found[ROLES] = {0};
  json_object_foreach(record, key, value)
  {
    size_t i = 0;
    if (is_ignored(args, key)) continue;
    while (i < KEYS && strcmp(keys[i].name, key) != 0) i++;
    if (i == KEYS)
      return unknown("the key", key,
                     ": a record has \"prompt\" and \"answer\", or \"messages\"; "
                     "ignore=[\"KEY\"] leaves a key out");
    if (found[keys[i].role])
      return ampc_fail(AMPC_BAD_FILE, "\"%s\" is a second %s of the record", key,
                       keys[i].role == ROLE_user ? "prompt" : "answer");
    if (!json_is_string(value)) return ampc_fail(AMPC_BAD_FILE, "\"%s\" is no text", key);
    found[keys[i].role] = value;
  }
  if (!found[ROLE_user] || !found[ROLE_answer])
    return ampc_fail(AMPC_BAD_FILE, "the record has no \"%s\"",
                     found[ROLE_user] ? "answer" : "prompt");
  ampc_status status = AMPC_OK;
  for (Role role = 0; role < ROLES && !status; role++)
    if (found[role]) status = take_message(r, role, text_of(found[role]));
  return status;
}

static ampc_status take_messages(Record *r, const json_t *list)
{
  size_t i;
  json_t *one;
  ampc_status status = AMPC_OK;
  if (!json_is_array(list)) return ampc_fail(AMPC_BAD_FILE, "\"messages\" is no list");
  json_array_foreach(list, i, one)
  {
    const json_t *name = json_object_get(one, "role"), *content = json_object_get(one, "content");
    Role role = 0;
    if (!json_is_string(name) || !json_is_string(content) || json_object_size(one) != 2)
      return ampc_fail(AMPC_BAD_FILE, "message %zu is not {\"role\": TEXT, \"content\": TEXT}",
                       i + 1);
    while (role < ROLES && strcmp(role_names[role], json_string_value(name)) != 0) role++;
    if (role == ROLES)
      return unknown("the role", json_string_value(name), "; known: system, user, assistant");
    status = take_message(r, role, text_of(content));
    if (status) return status;
  }
  return r->c->answers ? AMPC_OK : ampc_fail(AMPC_BAD_FILE, "no message is the assistant's");
}

static ampc_status take_record(Record *r, json_t *record, const char *args)
{
  const char *key;
  json_t *value;
  const json_t *messages = json_object_get(record, "messages");
  if (!json_is_object(record)) return ampc_fail(AMPC_BAD_FILE, "the line is no object {..}");
  if (!messages) return take_prompt(r, record, args);
  json_object_foreach(record, key, value)
  {
    if (strcmp(key, "messages") != 0 && !is_ignored(args, key))
      return unknown("the key", key, " beside \"messages\"; ignore=[\"KEY\"] leaves a key out");
  }
  return take_messages(r, messages);
}

ampc_status chat_record(Chat *c, const char *json, size_t n, const char *args, Ids *out)
{
  json_error_t error;
  char shown[SHOWN_ROOM];
  Record r = {.c = c};
  if (n >= 3 && memcmp(json, "\xef\xbb\xbf", 3) == 0) json += 3, n -= 3; /* a byte order mark */
  json_t *record = json_loadb(json, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
  if (!record)
    return ampc_fail(AMPC_BAD_FILE, "column %d: %s", error.column,
                     ampc_show(shown, sizeof shown, error.text, ""));
  ampc_status status = begin_parts(c);
  if (!status) status = take_record(&r, record, args);
  if (!status) status = encode(c, out);
  json_decref(record);
  for (size_t i = 0, from = 0, answer = false; i < c->n && !status; i++) {
    if (!c->part[i].placed) continue;
    for (size_t id = from; answer && id < c->part[i].first; id++)
      out->at[id] |= (uint32_t)TEXTS_ANSWER;
    from = c->part[i].first;
    answer = !answer;
  }
  return status;
}
