/* Compares the ids of conversations that grow turn by turn with those of whole records.
 * usage: turns_check TOKENIZER TEMPLATE <RECORDS
 *
 * A record is {"messages": [..]}, one a line. The ids of its answers, with the token that ends
 * each, are those of the whole record, as if a model had drawn them. Each record is tried twice:
 * with answers that the model has ended, and with answers that end before that token. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/data/formats/texts.h"
#include "runtime/data/texts/chat.h"

static const uint32_t answer = (uint32_t)TEXTS_ANSWER;

static void need(ampc_status status)
{
  if (!status) return;
  fprintf(stderr, "turns_check: %s\n", ampc_last_error());
  exit(2);
}

/* Appends the next answer of `whole` and moves *at behind it. `blank`: the template has a blank
 * before an answer, of which a token may be no part of the answer. A model draws it. */
static void take_answer(const Ids *whole, size_t *at, bool ended, bool blank, Ids *out)
{
  while (*at < whole->n && !(whole->at[*at] & answer)) ++*at;
  if (blank && *at == out->n + 1) need(tokenizer_append(out, whole->at[*at - 1]));
  for (; *at < whole->n && whole->at[*at] & answer; ++*at)
    need(tokenizer_append(out, whole->at[*at] & ~answer));
  if (!ended) out->n--;
}

static void build(Chat *chat, const json_t *messages, const Ids *whole, bool ended, bool blank,
                  Ids *out)
{
  size_t i, at = 0;
  json_t *one;
  const char *system = NULL;
  bool first = true;
  json_array_foreach(messages, i, one)
  {
    const char *role = json_string_value(json_object_get(one, "role"));
    const json_t *content = json_object_get(one, "content");
    const char *text = json_string_value(content);
    const size_t n = json_string_length(content);
    if (strcmp(role, "system") == 0) system = text;
    if (strcmp(role, "assistant") == 0) take_answer(whole, &at, ended, blank, out);
    if (strcmp(role, "user") != 0) continue;
    need(first ? chat_prompt(chat, system, text, n, out) : chat_turn(chat, ended, text, n, out));
    first = false;
  }
}

/* The last answer is the end of what grew; the template may have a line's end after it. */
static bool same(const Ids *whole, const Ids *grown)
{
  bool good = grown->n > 0 && grown->n <= whole->n;
  for (size_t i = 0; i < grown->n && good; i++) good = (whole->at[i] & ~answer) == grown->at[i];
  for (size_t i = grown->n + 1; i < whole->n && good; i++) good = !(whole->at[i] & answer);
  return good;
}

static void print_ids(const char *name, const Ids *ids)
{
  printf("  %s", name);
  for (size_t i = 0; i < ids->n; i++) printf(" %u", ids->at[i] & ~answer);
  putchar('\n');
}

int main(int argc, char **argv)
{
  Tokenizer *t;
  Chat *chat;
  char *line = NULL;
  size_t room = 0;
  ssize_t n;
  int turns = 0, wrong = 0;
  if (argc != 3) return 2;
  need(tokenizer_open(argv[1], &t));
  need(chat_open(t, argv[1], argv[2], &chat));
  while ((n = getline(&line, &room, stdin)) > 0) {
    json_t *record = json_loadb(line, (size_t)n, 0, NULL);
    Ids whole = {0};
    need(chat_record(chat, line, (size_t)n, "", &whole));
    for (int ended = 0; ended < 2; ended++, turns++) {
      Ids grown = {0};
      build(chat, json_object_get(record, "messages"), &whole, ended,
            strcmp(argv[2], "mistral") == 0, &grown);
      if (!same(&whole, &grown)) {
        wrong++;
        printf("differs (%s): %s", ended ? "ended" : "not ended", line);
        print_ids("whole", &whole);
        print_ids("grown", &grown);
      }
      free(grown.at);
    }
    free(whole.at);
    json_decref(record);
  }
  printf("%d conversations\n", turns);
  free(line);
  chat_close(chat);
  tokenizer_close(t);
  return wrong || !turns;
}
