/* Fuzz target for tokenizers. Input that begins with { or a newline is a file: a tokenizer.json or
 * a .model. If it is read, it encodes and decodes a few texts. Any other input is a text, and its
 * first byte chooses a tokenizer of tests/tokenizers/fixtures. */
#include <glob.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/data/tokenizer/tokenizer.h"

static void use(Tokenizer *t, const char *text, size_t n, bool plain)
{
  Ids ids = {0};
  char *back = NULL;
  size_t n_back;
  if (tokenizer_encode(t, text, n, true, plain, &ids) == AMPC_OK)
    for (size_t i = 0; i < ids.n; i++)
      if (ids.at[i] >= TOKENIZER_MOST_IDS) abort();
  if (tokenizer_decode(t, ids.at, ids.n, plain, &back, &n_back) == AMPC_OK) free(back);
  free(ids.at);
}

static void use_file(const char *bytes, size_t n)
{
  static const char *const texts[] = {
      "Hello  World!\r\n 12345 don't", "e\u0323\u0301 \u4f60\u597d \U0001f600\u200d",
      "<s>a</s><unk>[CLS]\u2581x", "    ", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
  Tokenizer *t;
  if (tokenizer_read("fuzz", bytes, n, &t)) return;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    use(t, texts[i], strlen(texts[i]), i % 2);
  tokenizer_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static Tokenizer *known[64];
  static size_t n;
  glob_t found;
  if (!n && !glob("tests/tokenizers/fixtures/*[!s].json", 0, NULL, &found) &&
      !glob("tests/tokenizers/fixtures/*.model", GLOB_APPEND, NULL, &found)) {
    for (size_t i = 0; i < found.gl_pathc && n < 64; i++)
      if (!tokenizer_open(found.gl_pathv[i], &known[n])) n++;
    globfree(&found);
  }
  if (!n) abort();
  if (size && (*data == '{' || *data == '\n'))
    use_file((const char *)data, size);
  else if (size)
    use(known[*data % n], (const char *)data + 1, size - 1, *data & 64);
  return 0;
}
