/* amp tune: searches the precision of each module of a job.
 *
 * A trial is an assignment of types to modules, and what was measured of it: how far the loss and
 * the gradients of some batches deviate from f32. search.c chooses the trials, trial.c measures
 * them, cover.c writes an assignment as a `precision` declaration. */
#pragma once
#include <jansson.h>
#include "ampc_rt.h"
#include "compiler/cost/gpu.h"
#include "compiler/graph/ir.h"
#include "runner/jit/jit.h"

#define TUNE_MARK "tune:" /* begins the comments of lines that amp tune writes into a job */

/* ---- units.c ---- */

/* A module, or the whole job: unit 0. */
typedef struct Unit {
  const char *path, *type; /* "net.fc1", "Linear"; of the job: "", "train" */
  uint32_t parent;         /* index of the module around it; of a model: 0 */
  bool own;                /* it computes floats itself, in the precision of the job */
  bool lost;               /* raised because loss or gradients are not finite without it */
  uint32_t line;           /* of the job, where it first computes; 0: unknown */
  /* Values that f16 would store, in steps of f32: */
  double greatest, least; /* absolute values, without zeros; 0: no value */
  uint32_t steps_over;    /* steps with a value beyond the range of f16 */
  double under;           /* largest fraction of the elements of a value that f16 makes 0 */
} Unit;
typedef VEC(Unit) Units;

/* Returns the modules of a job that was compiled in f32, outer modules first. */
Units units_find(Compile *c);
/* Returns the index of the module with this path; 0: there is none. */
uint32_t unit_find(const Units *u, const char *path);

/* ---- cover.c ---- */

/* An assignment: the kind of region of each unit, as index into Tune.kinds. Units without own
 * computation have no type of their own; their entry is ignored. */
typedef const uint8_t *Kinds;

typedef struct ModulePin {
  uint32_t unit;
  uint8_t kind;
} ModulePin;
typedef struct Cover { /* the fewest pins that give an assignment */
  uint8_t base;        /* kind of the `precision` itself */
  VEC(ModulePin) pins; /* outer modules first */
} Cover;
Cover cover_find(Arena *arena, const Units *u, uint32_t n_kinds, Kinds kinds);

/* ---- trial.c ---- */

typedef struct Deviation { /* relative to f32 */
  double gradient, loss;   /* infinite: a number was not finite */
} Deviation;

typedef struct Trial {
  const char *text;     /* the declaration, without comments */
  const uint8_t *kinds; /* the assignment */
  Deviation from_f32;
  double scale;       /* the loss scale with which all gradients were finite; 1: none */
  double us;          /* predicted time of a step; infinite: it does not compile for the GPU */
  double measured_us; /* time of forward and backward on this device; 0: not measured */
} Trial;

typedef struct Tune {
  Arena *arena;
  const Options *compile;   /* target and data are those of this machine */
  ampc_train_options train; /* device, seed, data */
  const Gpu *gpu;           /* times are predicted for it; cpu_measure(): this processor */
  const char *store, *key;  /* file of the trials; identifies the job and the options */
  uint32_t steps, batches;
  bool measure, quiet;
  bool late;           /* the deadline has passed */
  double deadline;     /* seconds_now() at which no new trial begins; infinite: never */
  double bound;        /* of both deviations */
  RegionKind kinds[4]; /* kinds[0] is f32 */
  uint32_t n_kinds;
  const char *f32;     /* declaration of the reference: without pins and 16-bit weights */
  const char *clauses; /* the job's own clauses of `precision`, each on a line */
  const char *scaler;  /* its clause `scaler`; NULL: it has none */
  Units units;
  VEC(Trial *) trials;
  uint32_t measured;           /* trials of this run; the others come from the file */
  struct Reference *reference; /* trial.c; NULL until it is needed */
  /* of the run of f32: */
  double loss, nudged_loss; /* mean of the last quarter of the steps; nudged: weights + 1 ulp */
  bool ran;                 /* the fields above are known */
} Tune;

/* Returns the declaration of an assignment: lines, with comments if `why` is not NULL. *why is the
 * comment of the first line, why[1 + i] that of pin i. */
const char *tune_declaration(const Tune *t, const Cover *cover, double scale,
                             const char *const *why);

/* Trains Tune.steps steps in f32. Sets the ranges of the units and the fields after `reference`. */
ampc_status tune_run_f32(Tune *t);
/* Measures an assignment, unless the same has been measured. */
ampc_status tune_trial(Tune *t, Kinds kinds, Trial **out);
/* Measures a declaration as it is; NULL: that of the job. */
ampc_status tune_measure(Tune *t, const char *text, Trial *out);
/* Predicts the microseconds of a step with this declaration. */
double tune_predict(const Tune *t, const char *text);
typedef struct Proof { /* Tune.steps steps from the beginning */
  double loss;         /* mean of the last quarter of the steps; infinite: a loss was not finite */
  double scale;        /* loss scale at the end */
  int64_t skipped;     /* steps that the loss scaler skipped */
} Proof;
/* Trains with the declaration; NULL: with that of the job. */
ampc_status tune_train(Tune *t, const char *text, Proof *out);
uint32_t tune_block(const ampc_program *p); /* the first train block; n_blocks: there is none */
void tune_close(Tune *t);                   /* frees the reference */
uint32_t trial_lowered(const Tune *t, const Trial *trial); /* number of modules in 16 bits */
bool trial_holds(const Tune *t, const Trial *trial);       /* whether it keeps the bound */

/* ---- search.c ---- */

/* Finds the assignment of least time that keeps the bound. f32 for all modules is a result only
 * with `with_f32`, or if no other trial keeps the bound. */
ampc_status tune_search(Tune *t, bool with_f32, Trial **out);

/* ---- words.c ---- */

/* Returns the declaration of the trial, with the reason of each pin as a comment. */
const char *tune_result(const Tune *t, const Trial *trial);
/* Returns the pins with their reasons, and the predicted time that each costs. */
json_t *tune_pins_json(const Tune *t, const Trial *trial);

/* ---- patch.c ---- */

/* A change of a job's text: bytes [start, end) become `text`. */
typedef struct Patch {
  const char *path, *source; /* the job, and its whole text */
  uint32_t size, start, end;
  const char *text;
} Patch;

/* Reads the job's `precision` from the tree of its text: sets Tune.clauses and Tune.scaler, without
 * lines that amp tune has written. Returns the word, "f16"; "" if it has none. */
const char *patch_read(Tune *t, Compile *c);
/* Makes the patch that gives the job this declaration. */
Patch patch_make(const Tune *t, Compile *c, const char *declaration);
void patch_print(const Tune *t, const Patch *p);
ampc_status patch_write(const Tune *t, const Patch *p);

/* ---- store.c ---- */

/* Sets Tune.key, and reads the trials of earlier runs with that key, if the file has any. */
ampc_status store_read(Tune *t, Compile *c);
/* Writes all trials. `chosen` NULL: the search goes on. */
ampc_status store_write(const Tune *t, const Trial *chosen);
