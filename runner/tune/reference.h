/* The run of f32 that trials are compared with. */
#pragma once
#include "tune.h"

typedef struct Loaded { /* a compiled job */
  Compile *c;
  Jit *jit;
  ampc_runtime *rt;
} Loaded;

typedef struct Batch { /* forward and backward on one batch */
  double loss, scale;  /* scale: the loss scale */
  double us;
  bool finite;     /* loss and gradients are */
  float *gradient; /* of all parameters, times `scale`, as in GRAD */
} Batch;

typedef struct Reference {
  Loaded base; /* f32, with probes of all values in every step */
  ampc_batches *batches;
  const char *weights; /* path of those after Tune.steps steps; NULL: not yet there */
  int file;            /* their descriptor */
  Batch *batch;        /* [Tune.batches], with these weights in f32 */
} Reference;

/* Compiles the job with this declaration and creates a runtime. Close it even after a failure. */
ampc_status loaded_open(Tune *t, Loaded *r, const char *text, uint32_t probe_every);
void loaded_close(Loaded *r);
/* Runs forward and backward on Tune.batches batches. `out` is zero before. */
ampc_status batches_run(Tune *t, const char *text, Batch *out);
void batches_free(const Tune *t, Batch *b); /* NULL is allowed */
/* Returns how much `of` deviates from `is`, the reference. */
Deviation batches_compare(const Tune *t, const Batch *of, const Batch *is);

/* Gets the sum of all losses of the last body. */
ampc_status tune_loss(ampc_runtime *rt, double *out);
