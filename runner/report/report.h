/* `amp report`: what the files of the page share. */
#pragma once
#include "compiler/explain/explain.h"
#include "runner/inspect/inspect.h"

typedef struct Report {
  Inspection in;
  Explanation e;
  const char *log_dir, *probe; /* --log-dir of a run; file of amp probe --output; or NULL */
  bool no_ptx;
  const char *note; /* what the page lacks, and why; or NULL */
} Report;

/* Each gives an object or list for the page, NULL when the machine has no memory left. Keys are
 * those that page.js reads. */
json_t *report_nodes(const Report *r);   /* nodes.c: the step's nodes, alike ones once */
json_t *report_memory(const Report *r);  /* memory.c: spaces, and values over the step */
json_t *report_kernels(const Report *r); /* kernels.c: the step's commands, alike ones once */
/* kernels.c: texts of those rows, [CUDA or "", PTX or ""], compressed: *out is base64 of gzip of
 * JSON. An exit status. */
int report_texts(Report *r, const char **out);
/* log.c: metrics.csv of a run as columns. NULL after a message. */
json_t *report_log(const Report *r);
/* log.c: the content of a file of amp probe --output. NULL after a message. */
json_t *report_probe(const Report *r);
