/* Metadata of checkpoints: numbers under keys, names of classes. A key is joined of any parts. */
#pragma once
#include "common/number.h"
#include "safetensors.h"

/* The parts of a key in order: KEY("ampc.setting.", name). */
#define KEY(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Joins the parts of a key. The caller frees the result; NULL: out of memory. */
char *metadata_key(const char *const *parts);
/* Sets a value. False: out of memory. */
__attribute__((format(printf, 3, 4))) bool metadata_set(TensorFile *f, const char *const *key,
                                                        const char *format, ...);

/* A reader of untrusted metadata. After the first invalid value, all others read as absent or 0. */
typedef struct Metadata {
  const TensorFile *file;
  bool bad;
  char *key;                      /* the key that was read last; must be freed */
  char expected[AMPC_RANGE_ROOM]; /* the values that would be valid for the bad key */
} Metadata;

/* Returns the value of a key; NULL: the file lacks it. */
const char *metadata_get(Metadata *m, const char *const *key);
/* Marks the value of m->key as invalid. */
void metadata_refuse(Metadata *m, const char *expected);
/* Read numbers that must be present. */
int64_t metadata_count(Metadata *m, const char *const *key, int64_t least, int64_t most);
double metadata_real(Metadata *m, const char *const *key, ampc_domain domain);

/* Checks that the file's names have the order of the program's, of labels and of columns that the
 * net reads: the net would otherwise confuse the classes. */
ampc_status metadata_check_classes(const char *path, const ampc_program *p, const TensorFile *f);
