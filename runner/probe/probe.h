/* Reads and reports probes, which pass probe has added to the graph (Graph.probes). */
#pragma once
#include <jansson.h>
#include "ampc_rt.h"
#include "compiler/command/command.h"
#include "compiler/diag/diag.h"
#include "compiler/graph/ops.h"
#include "range.h"

typedef struct Seen { /* a value of the program, over all probed steps */
  const Probe *probe; /* the first of the value's probes: each variant of a block has its own */
  const char *name;   /* "net.fc2 linear", "fc2.weight" */
  Place place;        /* the user's line; source NULL: no line */
  Range range;
  bool meant; /* infinite only where the job puts infinity in: watch_first_lost sets it */
} Seen;

typedef struct Watch {
  Compile *c;     /* compiled with options.probe_every */
  uint32_t *seen; /* for each probe: index into `at` */
  Seen *at;       /* in the order of the step */
  uint32_t n;
  int64_t steps; /* number of steps probed so far */
  double scale;  /* loss scale of the last probed step */
} Watch;

/* Allocates in the compile's arena. */
void watch_init(Watch *w, Compile *c);
/* Clears all ranges. */
void watch_clear(Watch *w);
/* Waits for the last step of `block` and adds its counts. *found: whether the variant of that step
 * has probes. */
ampc_status watch_read(Watch *w, ampc_runtime *rt, uint32_t block, bool *found);
/* Returns the first value in the order of the step that is not finite although its inputs are;
 * NULL: no such value. `backward` true: searches backward; false: searches forward, weights and
 * data. */
const Seen *watch_first_lost(Watch *w, bool backward);
/* Returns the probed value of an input of s; NULL: the input has no probe. */
const Seen *watch_input(const Watch *w, const Seen *s, uint32_t input);
bool seen_is_backward(const Seen *s);
/* Returns the factor in the numbers of s: for a parameter's gradient, the loss scale of its step,
 * or the largest scale of several steps; else 1. */
double seen_scale(const Watch *w, const Seen *s);

/* ---- findings.c ---- */

typedef struct Finding { /* what is wrong with a value, in words */
  const Seen *seen;
  double badness;          /* larger is worse */
  const char *text, *cure; /* cure: "" if none is known */
} Finding;
/* Returns all findings, the worst first. */
const Finding *watch_findings(const Watch *w, uint32_t *out_n);

/* ---- print.c, json.c ---- */
/* Prints findings in words, then two tables of `most` rows: the largest values, and the values of
 * which the largest fractions would be 0 in f16. `most` 0: one table of all values, in the order of
 * the step. `path` limits the output to values whose name begins with it; NULL: all. */
void watch_print(const Watch *w, const char *path, uint32_t most);
/* Returns the name for people: "gradient of fc1.weight". */
const char *seen_name(const Watch *w, const Seen *s);
/* Returns the finding on one line, without its cure: "net.fc2 linear (job.amp:14): ..." */
const char *finding_text(const Watch *w, const Finding *f);
json_t *watch_json(const Watch *w);

/* ---- diagnose.c ---- */
typedef struct Lost { /* the step that ended a run: ampc_train_options.lost */
  bool there;
  int64_t step;              /* step of the run */
  ampc_data_position at;     /* position of its first batch */
  const char *begun, *saved; /* the checkpoints that it began from and wrote last; NULL: none */
  const char *set;           /* how its user changes a setting: "--set", ":set" */
} Lost;
/* Compiles the job of the run with probes in every step. `precision`: replaces that of the job, or
 * NULL. Returns NULL if it does not compile. The caller destroys the result. */
typedef Compile *CompileProbed(void *context, const char *precision);
/* Prints to stderr why that step of the run on rt was lost: the first value that is not finite,
 * then the most likely cause. A program with probes on all values repeats the step, and the steps
 * before it as far as time allows. The run itself does not change. */
void diagnose(CompileProbed *compile, void *context, const char *device, const char *data_dir,
              ampc_runtime *rt, const Lost *lost);
