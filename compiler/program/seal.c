/* Writes and checks the line by which ampc recognizes its own text; see Note [the seal]. */
#include "seal.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define WORDS " As ampc wrote it: xxh64 "
#define ZEROS "0000000000000000"

enum { DIGITS = sizeof ZEROS - 1, HEAD = 4096 /* the line is in the first bytes of a text */ };

void seal_put(Printer *p, const char *comment)
{
  EMIT(p, "%s" WORDS ZEROS "; -o replaces an edited text only with --force.\n", comment);
}

/* Returns the digits in the seal of a text; NULL if the text has no seal. The mark is at the
 * beginning of a line, where no comment of the job can be. */
static char *digits_of(const char *text, size_t size)
{
  static const char *const marks[] = {"\n//" WORDS, "\n!" WORDS};
  for (size_t i = 0; i < 2; i++) {
    size_t head = size < HEAD ? size : HEAD, n = strlen(marks[i]);
    char *mark = memmem(text, head, marks[i], n);
    if (mark && (size_t)(mark - text) + n + DIGITS <= size) return mark + n;
  }
  return NULL;
}

static void hash_text(const char *text, size_t size, const char *digits, char out[DIGITS + 1])
{
  size_t before = (size_t)(digits - text), after = before + DIGITS;
  XXH64_state_t *state = XXH64_createState();
  if (!state) arena_out_of_memory();
  XXH64_reset(state, 0);
  XXH64_update(state, text, before);
  XXH64_update(state, ZEROS, DIGITS);
  XXH64_update(state, text + after, size - after);
  snprintf(out, DIGITS + 1, "%016llx", (unsigned long long)XXH64_digest(state));
  XXH64_freeState(state);
}

void seal_close(Text *out, size_t from)
{
  char hash[DIGITS + 1], *text = out->at + from, *digits = digits_of(text, out->n - from);
  assert(digits);
  hash_text(text, out->n - from, digits, hash);
  memcpy(digits, hash, DIGITS);
}

Seal seal_of(const char *text, size_t size)
{
  char hash[DIGITS + 1];
  const char *digits = digits_of(text, size);
  if (!digits) return SEAL_none;
  hash_text(text, size, digits, hash);
  return memcmp(digits, hash, DIGITS) == 0 ? SEAL_whole : SEAL_broken;
}
