/* What all ranks must have in common: their input, and whether they go on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "team.h"

enum { LINE = 200 }; /* bytes of a line in a message */

/* Fails on all ranks alike; `teller` prints the message. */
static ampc_status fail_alike(Team *t, int teller, ampc_status status, const char *message)
{
  t->failed = t->alike = true;
  team_silence(t->ranks.rank != teller);
  return ampc_fail(status, "%s", message);
}

/* Gathers a row of each rank into memory that the caller frees. */
static ampc_status gather_rows(Ranks *r, const void *own, size_t bytes, void **out)
{
  *out = calloc((size_t)r->size, bytes);
  if (!*out) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %d ranks", r->size);
  memcpy((char *)*out + (size_t)r->rank * bytes, own, bytes);
  return ranks_gather(r, *out, (int64_t)bytes);
}

/* ---- agreement ---- */

typedef struct Result {
  int32_t status;
  char message[MESSAGE_ROOM];
} Result;

ampc_status ranks_agree(Ranks *r, ampc_status status)
{
  if (!r) return status;
  int32_t own = (int32_t)status, failed = 0;
  void *all = NULL;
  Result result = {.status = (int32_t)status};
  char text[MESSAGE_ROOM + NAME_ROOM];
  snprintf(result.message, sizeof result.message, "%s", status ? ampc_last_error() : "");
  status = gather_rows(r, &own, sizeof own, &all);
  for (int i = 0; i < r->size && !status; i++) failed |= ((const int32_t *)all)[i];
  free(all);
  if (status || !failed) return status;
  status = gather_rows(r, &result, sizeof result, &all);
  const Result *results = all;
  for (int i = 0; i < r->size && !status; i++) {
    if (!results[i].status) continue;
    snprintf(text, sizeof text, "%s: %s", ranks_name(r, i), results[i].message);
    status = fail_alike(team_of(r), i, (ampc_status)results[i].status, text);
  }
  free(all);
  return status;
}

/* ---- equal texts ---- */

typedef struct Print { /* tells texts apart */
  uint64_t hash;
  int64_t size;
} Print;

static int line_length(const char *text)
{
  size_t n = strcspn(text, "\n");
  return n < LINE ? (int)n : LINE;
}

/* Writes the message: the first lines of `a`, of rank 0, and `b` that differ. */
static void tell(const Ranks *r, const char *what, const char *a, const char *b, int other,
                 char out[MESSAGE_ROOM])
{
  size_t same = 0;
  for (size_t i = 0; a[i] && a[i] == b[i]; i++)
    if (a[i] == '\n') same = i + 1;
  a += same, b += same;
  snprintf(out, MESSAGE_ROOM, "%s differs between ranks: %s has `%.*s`, %s has `%.*s`", what,
           ranks_name(r, 0), line_length(a), a, ranks_name(r, other), line_length(b), b);
}

/* Rank 0 gets the text of `other`, and all get its message. */
static ampc_status refuse(Ranks *r, const char *what, const char *text, int other, int64_t size)
{
  char message[MESSAGE_ROOM] = "", *theirs = NULL;
  void *all = NULL;
  ampc_status status = AMPC_OK;
  if (r->rank == other) status = ranks_send(r, 0, text, (int64_t)strlen(text));
  if (r->rank == 0) {
    theirs = calloc((size_t)size + 1, 1);
    status = theirs ? ranks_receive(r, other, theirs, size)
                    : ampc_fail(AMPC_RUN_FAILED, "out of memory comparing %s", what);
    if (!status) tell(r, what, text, theirs, other, message);
  }
  if (!status) status = gather_rows(r, message, sizeof message, &all);
  if (!status) status = fail_alike(team_of(r), 0, AMPC_BAD_USAGE, all);
  free(all);
  free(theirs);
  return status;
}

ampc_status ranks_same(Ranks *r, const char *what, const char *text)
{
  void *all = NULL;
  const size_t length = strlen(text);
  const Print own = {XXH3_64bits(text, length), (int64_t)length};
  ampc_status status = gather_rows(r, &own, sizeof own, &all);
  const Print *prints = all;
  int other = 0;
  while (!status && other < r->size && prints[other].hash == prints[0].hash &&
         prints[other].size == prints[0].size)
    other++;
  if (!status && other < r->size) status = refuse(r, what, text, other, prints[other].size);
  free(all);
  return status;
}
