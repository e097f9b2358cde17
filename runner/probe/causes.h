/* What the repeated steps of a lost run show, and the causes that follow from it. */
#pragma once
#include "history.h"

typedef enum Blame {                 /* what made the weights explode, see find_blame */
                     BLAME_none,     /* they did not */
                     BLAME_rate,     /* the learning rate */
                     BLAME_decay,    /* weight decay times the learning rate */
                     BLAME_gradient, /* gradients that were large from the first step on */
                     BLAME_spike     /* one gradient, much larger than those before it */
} Blame;

typedef struct Evidence {
  Again *a;
  History h;
  Watch lost;        /* the lost step, at the loss scale of the run */
  const Seen *first; /* its first value that is not finite, in lost.at */
  double scale;      /* loss scale of that step */
  Watch plain;       /* the same at a loss scale of 1, or a copy of `lost` */
  const Seen *bad;   /* first value that is not finite in `plain`; NULL: all are finite */
  bool f32_finite;   /* in f32 all values of that step are finite */
  Blame blame;
  uint32_t spot; /* BLAME not none: index in h.at of the step that made the weights explode */
  double grown;  /* norm of the weights before the lost step; 0: unknown */
} Evidence;

typedef struct Reason {
  const char *cause;        /* "learning rate" */
  const char *shown, *help; /* the numbers that show it; what to do */
} Reason;

/* Computes blame, spot and grown from the rest. */
void evidence_weigh(Evidence *e);
/* Writes the causes for which there is evidence, the most likely one first, to out[CAUSES_MOST].
 * Returns their number. May repeat steps of e->a. Texts are in the compile's arena. */
enum { CAUSES_MOST = 16 };
uint32_t causes_find(Evidence *e, Reason *out);
