/* Metadata of checkpoints: numbers under keys that are put together of parts, which have any
 * length. */
#pragma once
#include "runtime/plan/number.h"
#include "safetensors.h"

/* The parts of a key, one behind the other: KEY("ampc.setting.", name). */
#define KEY(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Malloced; NULL: out of memory. */
char *metadata_key(const char *const *parts);
/* False: out of memory. */
__attribute__((format(printf, 3, 4))) bool metadata_set(TensorFile *f, const char *const *key,
                                                        const char *format, ...);

/* A file from somewhere: after the first value that makes no sense all others are absent or 0. */
typedef struct Metadata {
  const TensorFile *file;
  bool bad;
  char *key;                      /* malloced: of the last value that was looked for */
  char expected[AMPC_RANGE_ROOM]; /* what would have done in the place of the bad one */
} Metadata;

/* NULL: the file lacks it. */
const char *metadata_get(Metadata *m, const char *const *key);
/* The value of m->key is bad. */
void metadata_refuse(Metadata *m, const char *expected);
/* Numbers that have to be there. */
int64_t metadata_count(Metadata *m, const char *const *key, int64_t least, int64_t most);
double metadata_real(Metadata *m, const char *const *key, ampc_domain domain);
