/* A source of samples: opened and checked once, then read sample by sample from any thread. */
#pragma once
#include "runtime/plan/formats.h"

typedef struct DataSource {
  const ampc_source *desc;
  const ampc_program *program;
  const ampc_format *format;
  ampc_shards *reader;
  char *path;                     /* NULL: the format has no file */
  int64_t samples;                /* samples in the whole source */
  int64_t first, count;           /* the samples that the job uses: its `part` of them */
  int64_t elements, sample_bytes; /* elements and bytes of one sample in INPUT */
  int64_t *order; /* of `drawn` samples: the order from which `part` takes a range; NULL: the
                     file's. The sources of a block share it */
} DataSource;

/* Opens the n sources of a block. Checks that all have as many samples, and draws their common
 * order if they are `drawn`. The caller calls sources_close, also after a failure. */
ampc_status sources_open(const ampc_program *p, const ampc_source *desc, uint32_t n,
                         const char *data_dir, uint64_t seed, DataSource **out);
void sources_close(DataSource *s, uint32_t n);
const char *source_path(const DataSource *s); /* for messages, also if it has no file */
/* Opens one source, in the order of its file. */
ampc_status source_open(const ampc_program *p, const ampc_source *desc, const char *data_dir,
                        uint64_t seed, DataSource *out);
void source_close(DataSource *s); /* call it also after a failed open */
/* Computes mean and deviation of each channel, the first axis of a sample, over the used samples.
 * `mean` and `deviation` have room for all channels. */
ampc_status source_measure(const DataSource *s, double *mean, double *deviation);
/* Finds the first value in the used samples that is NaN, or is not between -limit and limit.
 * *sample is the number of its sample in the whole source. Returns false if there is none. */
bool source_find_lost(const DataSource *s, double limit, int64_t *sample, double *value);
/* Finds the element of the samples, which are rows of a table, that is not between -limit and limit
 * in most samples: in *samples of them; *most: its largest absolute value. False: there is none. */
bool source_find_column(const DataSource *s, double limit, int64_t *column, int64_t *samples,
                        double *most);
/* The first labels of a source, in the order of the data. */
typedef struct Labels {
  int64_t count;
  double first, last;
  int64_t changes; /* how often a label differs from the one before it */
  bool ascending;  /* no label is less than the one before it */
} Labels;
/* Reads the labels of all used samples. The caller frees *out, also after a failure. */
ampc_status source_read_labels(const DataSource *s, int64_t **out);
/* Reads up to a million labels. Returns false if the source has no labels, or fails. */
bool source_labels(const DataSource *s, Labels *out);
/* Copies n of the used samples to `to`, from number `first` on; first + n <= count. `epoch` selects
 * the random changes of training; AMPC_AS_STORED: none. */
ampc_status source_copy(const DataSource *s, int64_t first, int64_t n, int64_t epoch, void *to);
/* Writes the name of a sample that was copied. Returns false if the sample has only its number. */
bool source_sample_name(const DataSource *s, int64_t sample, char *text, size_t size);
