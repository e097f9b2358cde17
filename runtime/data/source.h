/* A source of samples: opened and checked once, then read sample by sample from any thread. */
#pragma once
#include "ampc_rt.h"

typedef struct Source {
  const ampc_source *desc;
  const ampc_program *program;
  uint64_t seed;
  char *path;                     /* NULL: synthetic */
  char *bytes;                    /* decoded samples of the whole file; NULL: synthetic */
  int64_t samples;                /* of the whole file */
  int64_t first, count;           /* the part that is used */
  int64_t elements, sample_bytes; /* of one sample, as in INPUT */
} Source;

ampc_status source_open(const ampc_program *p, const ampc_source *desc, const char *data_dir,
                        uint64_t seed, Source *out);
void source_close(Source *s); /* also after a failed open */
/* Copies sample i, 0 <= i < count, to where a batch wants it. */
void source_copy(const Source *s, int64_t i, void *to);

/* Reads s->path as IDX, plain or gzipped: fills in bytes and samples. What the file must hold is
 * in desc. */
ampc_status idx_read(Source *s);
