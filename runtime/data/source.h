/* A source of samples: opened and checked once, then read sample by sample from any thread. */
#pragma once
#include "runtime/plan/formats.h"

typedef struct DataSource {
  const ampc_source *desc;
  const ampc_program *program;
  const ampc_format *format;
  ampc_shards *reader;
  char *path;                     /* NULL: the format has no file */
  int64_t samples;                /* of the whole source */
  int64_t first, count;           /* the part that is used */
  int64_t elements, sample_bytes; /* of one sample, as in INPUT */
} DataSource;

ampc_status source_open(const ampc_program *p, const ampc_source *desc, const char *data_dir,
                        uint64_t seed, DataSource *out);
void source_close(DataSource *s); /* also after a failed open */
/* Finds the first value of the part that is not finite, and its sample in the file; false: none. */
bool source_find_lost(const DataSource *s, int64_t *sample, double *value);
/* Copies n samples from `first` on, first + n <= count, to their place in a batch. They are as in
 * `epoch`, or as stored with AMPC_AS_STORED. */
ampc_status source_copy(const DataSource *s, int64_t first, int64_t n, int64_t epoch, void *to);
/* The name of a sample that was copied; false: the sample has only its number. */
bool source_sample_name(const DataSource *s, int64_t sample, char *text, size_t size);
