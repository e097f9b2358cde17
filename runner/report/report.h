/* `amp report`: the data that its files share. */
#pragma once
#include "compiler/explain/explain.h"
#include "runner/inspect/inspect.h"

typedef struct Report {
  Inspection in;
  Explanation e;
  const char *log_dir, *probe, *profile, *tune; /* options --log, --probe, ..; or NULL */
  bool no_ptx;
  const char *note; /* says what the page lacks, and why; or NULL */
} Report;

/* Each returns an object or list for the page; NULL: out of memory. page.js reads its keys. */
json_t *report_nodes(const Report *r);   /* nodes.c: nodes of the step, equal ones once */
json_t *report_memory(const Report *r);  /* memory.c: spaces, and lifetimes of values */
json_t *report_kernels(const Report *r); /* kernels.c: commands of the step */
/* kernels.c: sets *out to base64 of gzipped JSON: [CUDA or "", PTX or ""] of each such row.
 * Returns an exit status. */
int report_texts(Report *r, const char **out);
/* log.c: the columns and rows of a run's metrics.csv. NULL after a message. */
json_t *report_log(const Report *r);
/* log.c: the content of a file of amp probe --output, or of amp profile --output. NULL after a
 * message. */
json_t *report_probe(const Report *r);
json_t *report_profile(const Report *r);
/* log.c: the content of the file of trials that amp tune writes. NULL after a message. */
json_t *report_tune(const Report *r);
