/* The text of the job that amp import writes. */
#pragma once
#include "read.h"

/* What the user asks for. */
typedef struct JobWishes {
  const char *source, *weights; /* names of files */
  const char *freeze;           /* patterns, separated by commas; NULL: none */
} JobWishes;

typedef struct JobText {
  const char *whole;     /* with a train block, if the net can be trained */
  const char *untrained; /* without one */
  const char *why;       /* the net cannot be trained; NULL: it can */
} JobText;

/* Writes a job for a graph that has been read without refused nodes. The texts are in the reader's
 * arena. */
void job_text(Reader *r, const JobWishes *wishes, JobText *out);
