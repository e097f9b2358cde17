/* The course of a run up to the step in which it was lost, measured by repeating it. */
#pragma once
#include "again.h"

enum { NEAR = 64 };
typedef struct Input { /* the input of the net with the largest numbers */
  uint32_t seen;       /* index into Watch.at */
  double greatest, rms;
  bool few; /* only few elements are near the largest one: within a factor of NEAR */
} Input;

typedef struct Past {     /* one step; norms are over all trained weights */
  double weights, update; /* norm of the weights before the step, and of its change of them */
  double greatest;        /* largest change of an element */
  double gradient;        /* norm, unscaled, before clipping */
  uint32_t optimizer;     /* the one that made this change, by index in the program */
  double lr;              /* its learning rate, or the largest of its groups */
  Input input;
} Past;

typedef struct History {
  VEC(Past) at;    /* of the steps from `first` on */
  int64_t first;   /* the number of the first step */
  bool whole;      /* all steps before the lost one are there, and led to the same weights */
  Seen *begin;     /* the values of step `first`, by index into Watch.at */
  double *change;  /* by index into Watch.at, for weights: the largest element of the last update */
  int64_t changed; /* the step of that update; 0: no step changed the weights */
  uint8_t *inputs; /* by index into Watch.at: 1: an input of the net, see history_inputs */
} History;

/* Finds the values that come from the data alone and meet a value that depends on weights. */
void history_inputs(History *h, const Watch *w);
/* Returns the input with the largest numbers in the step that `w` has seen; greatest 0: none. */
Input history_input(const History *h, const Watch *w);
/* Repeats the steps before the lost one, from the beginning of the run; if that takes longer than
 * HISTORY_SECONDS, from its last checkpoint. Ctrl-C ends it early. */
ampc_status history_repeat(History *h, Again *a);

typedef struct Trial {  /* a run with other learning rates */
  double factor;        /* of the rates */
  uint32_t rates;       /* how many the optimizer has */
  int64_t steps;        /* steps of the trial; 0: there was not enough time */
  bool good;            /* all of them are finite */
  double before, after; /* mean loss of the first half and of the second; NaN: unknown */
} Trial;
/* Repeats the run from its beginning to some steps beyond the lost one, with the learning rates of
 * an optimizer times `factor`. `end`: the time by which it must be over, as of seconds_now();
 * Ctrl-C ends it early. */
ampc_status history_try(Again *a, const char *optimizer, double factor, double end, Trial *out);
/* Returns the value that a setting of the lost run has now; 0: there is none of this name. */
double history_setting(const Again *a, const char *name);
/* Returns what a probe of this kind saw of a parameter in the last step; NULL: nothing. */
const Seen *watch_param(const Watch *w, ProbeKind kind, uint32_t param);

enum { HISTORY_SECONDS = 20 };
