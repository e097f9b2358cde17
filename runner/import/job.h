/* The text of the job that amp import writes. */
#pragma once
#include "read.h"

/* What the user asks for. */
typedef struct JobWishes {
  const char *source, *weights; /* names of files */
  const char *freeze;           /* patterns, separated by commas; NULL: none */
  const char *const *size;      /* "x=3,224,224": sizes after the first one, of an argument */
  uint32_t n_sizes;
} JobWishes;

typedef struct JobText {
  const char *whole;     /* with a train block, if the net can be trained */
  const char *untrained; /* without one */
  const char *why;       /* the net cannot be trained; NULL: it can */
  const char *guessed;   /* "H=224, W=224": sizes that the file leaves open; "": none */
} JobText;

/* Writes a job for a graph that has been read without refused nodes. The texts are in the reader's
 * arena. AMPC_BAD_USAGE: a size does not fit. */
ampc_status job_text(Reader *r, const JobWishes *wishes, JobText *out);
