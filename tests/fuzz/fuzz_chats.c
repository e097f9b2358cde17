/* Fuzz target for records of jsonl() and templates of chats. The first line of the input is a
 * template, or empty: chatml. The rest is a record. For any bytes, a status is returned. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/data/formats/texts.h"
#include "runtime/data/texts/chat.h"

static void use(Tokenizer *t, const char *template, const char *record, size_t n)
{
  Chat *chat;
  Ids ids = {0};
  if (chat_open(t, "fuzz", template, &chat)) return;
  if (chat_record(chat, record, n, "ignore=id\n", &ids) == AMPC_OK)
    for (size_t i = 0; i < ids.n; i++)
      if ((ids.at[i] & ~(uint32_t)TEXTS_ANSWER) >= tokenizer_size(t)) abort();
  chat_prompt(chat, NULL, record, n, &ids);
  chat_turn(chat, false, record, n, &ids);
  free(ids.at);
  chat_close(chat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static Tokenizer *known[2];
  const char *end = memchr(data, '\n', size);
  if (!known[0] && (tokenizer_open("build-asan/chatml.json", &known[0]) ||
                    tokenizer_open("tests/tokenizers/fixtures/llama2.json", &known[1])))
    abort();
  if (!end) return 0;
  size_t n = (size_t)(end - (const char *)data);
  char *template = n ? strndup((const char *)data, n) : strdup("chatml");
  for (int i = 0; i < 2 && template; i++) use(known[i], template, end + 1, size - n - 1);
  free(template);
  return 0;
}
