/* Analyses in processes of their own. A text that makes the compiler crash, or that takes too much
 * time or memory, costs its answers and not the server. */
#pragma once
#include "analysis.h"
#include "message.h"

#define WORKER_SECONDS 10 /* for a compile or an answer */
#define WORKER_GIB     2  /* of memory */

typedef struct Worker Worker;
/* Compiles a job: see analysis_open(). Sets *first to the result of analysis_diagnostics(), or
 * returns NULL: then *why says why, or is NULL because the client sends an edit. */
Worker *worker_start(const Options *options, const char *const *uris, bool utf8, Stream *client,
                     json_t **first, const char **why);
/* Returns the answer to a request: analysis_answer(). NULL: end the worker; *why is as above. */
json_t *worker_ask(Worker *w, const json_t *request, const char **why);
void worker_end(Worker *w); /* w may be NULL */
