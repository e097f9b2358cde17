/* What probes see: who reads them, what is told of them. Pass probe makes them (Graph.probes). */
#pragma once
#include <jansson.h>
#include "ampc_rt.h"
#include "compiler/command/command.h"
#include "compiler/diag/diag.h"
#include "compiler/graph/ops.h"
#include "range.h"

typedef struct Seen { /* a value of the program, in all steps that looked at it */
  const Probe *probe; /* the first one of it: variants of a block have their own */
  const char *name;   /* "net.fc2 linear", "fc2.weight" */
  Place place;        /* of the line that the user wrote; source NULL: there is none */
  Range range;
} Seen;

typedef struct Watch {
  Compile *c;     /* compiled with options.probe_every */
  uint32_t *seen; /* by probe: index into `at` */
  Seen *at;       /* in the order of the step */
  uint32_t n;
  int64_t steps; /* that were looked at */
  double scale;  /* of the last one */
} Watch;

/* Memory of the compile's arena. */
void watch_init(Watch *w, Compile *c);
/* Forgets what was seen. */
void watch_clear(Watch *w);
/* What the step has found that was just asked for in `block`: waits for it. `found` tells whether
 * its variant is one that looks. */
ampc_status watch_read(Watch *w, ampc_runtime *rt, uint32_t block, bool *found);
/* The first value in the order of the step that is not finite though what it is made of is; NULL:
 * there is none. backward: of those of backward alone, else of forward's, weights and data. */
const Seen *watch_first_lost(const Watch *w, bool backward);
/* What a probe has seen; 0 and below: NULL. */
const Seen *watch_input(const Watch *w, const Seen *s, uint32_t input);
bool seen_is_backward(const Seen *s);
/* What the numbers of a parameter's gradient are times: the loss scale of its step, of several the
 * greatest; else 1. */
double seen_scale(const Watch *w, const Seen *s);

/* ---- findings.c ---- */

typedef struct Finding { /* what is wrong with a value, in words */
  const Seen *seen;
  double badness;          /* greater is worse */
  const char *text, *cure; /* cure: "" where there is none to name */
} Finding;
/* The worst first. */
const Finding *watch_findings(const Watch *w, uint32_t *out_n);

/* ---- print.c, json.c ---- */
/* Findings in words, then tables: the `most` greatest and those of which most would be 0 in f16; 0:
 * all values, in the order of the step; path: only values whose name begins with
 * it, or NULL. */
void watch_print(const Watch *w, const char *path, uint32_t most);
/* "gradient of fc1.weight", for people. */
const char *seen_name(const Watch *w, const Seen *s);
/* The finding on one line, without its cure: "net.fc2 linear (job.amp:14): ..." */
const char *finding_text(const Watch *w, const Finding *f);
json_t *watch_json(const Watch *w);

/* ---- diagnose.c ---- */
typedef struct Lost { /* what ended a run: ampc_train_options.lost */
  bool there;
  int64_t step;          /* of the run */
  ampc_data_position at; /* its first batch */
} Lost;
/* Why that step of the run on rt was lost: it is done again by a program that looks at all values,
 * with the weights and the scale that rt has. Told on stderr. */
void diagnose(const Options *options, const char *device, const char *data_dir, ampc_runtime *rt,
              const Lost *lost);
