/* The text of the job that amp import writes. */
#pragma once
#include "read.h"

/* Returns a job for a graph that has been read without refused nodes. `source`, `weights`: names of
 * files. The text is in the reader's arena. */
const char *job_text(Reader *r, const char *source, const char *weights);
