/* `amp report`: the data that its files share. */
#pragma once
#include "compiler/explain/explain.h"
#include "runner/inspect/inspect.h"

typedef struct Report {
  Arena *arena;
  Inspection in; /* without a job, neither this nor `e` is set */
  Explanation e;
  const char *const *logs; /* options --log */
  uint32_t n_logs;
  const char *probe, *profile, *tune; /* options --probe, ..; or NULL */
  bool no_ptx;
  const char *note; /* says what the page lacks, and why; or NULL */
} Report;

/* Each returns an object or list for the page; NULL: out of memory. page.js reads its keys. */
json_t *report_nodes(const Report *r);   /* nodes.c: nodes of the step, equal ones once */
json_t *report_memory(const Report *r);  /* memory.c: spaces, and lifetimes of values */
json_t *report_kernels(const Report *r); /* kernels.c: commands of the step */
/* kernels.c: sets *out to the packed texts, [CUDA or "", PTX or ""] of each such row. If they would
 * exceed `room` bytes, the fastest kernels get no PTX. Returns an exit status. */
int report_texts(Report *r, size_t room, const char **out);
/* kernels.c: returns base64 of the gzipped JSON; NULL: out of memory. */
const char *report_packed(Arena *arena, const json_t *json);
/* log.c: the runs of --log. NULL after a message. */
json_t *report_logs(const Report *r);
/* outputs.c: the content of a file of amp probe --output, or of amp profile --output. NULL after a
 * message. */
json_t *report_probe(const Report *r);
json_t *report_profile(const Report *r);
/* outputs.c: the content of the file of trials that amp tune writes. NULL after a message. */
json_t *report_tune(const Report *r);
