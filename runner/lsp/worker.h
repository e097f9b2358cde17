/* Analyses in processes of their own. A text that makes the compiler crash, or that takes too much
 * time or memory, costs its answers and not the server. */
#pragma once
#include "analysis.h"
#include "message.h"

#define WORKER_SECONDS 10 /* for a compile or an answer */
#define WORKER_GIB     2  /* of memory */

typedef struct Worker Worker;
/* Starts to compile a job: see analysis_open(). Sets *first to the result of
 * analysis_diagnostics(), or to NULL if there is none: then *why says why, and NULL is returned. */
Worker *worker_start(const Options *options, const char *const *uris, bool utf8, json_t **first,
                     const char **why);
/* Returns the answer to a request: analysis_answer(). NULL: the worker has failed; end it. */
json_t *worker_ask(Worker *w, const json_t *request);
void worker_end(Worker *w); /* w may be NULL */
