/* The schedule that waits for a metric of an eval block. */
#pragma once
#include "compiler/lower/lower.h"

/* The arguments of plateau_schedule() in the layer library. */
enum {
  PLATEAU_lr,
  PLATEAU_metric, /* the metric's name in the program */
  PLATEAU_factor,
  PLATEAU_patience,
  PLATEAU_mode, /* none: that of the metric */
  PLATEAU_threshold,
  PLATEAU_threshold_mode,
  PLATEAU_cooldown,
  PLATEAU_min_lr,
  PLATEAU_eps,
  PLATEAU_ARGUMENTS
};
typedef struct Plateau {
  Datum argument[PLATEAU_ARGUMENTS];
  ampc_plateau rule; /* its metric is set after all blocks */
  Span span;
} Plateau;

/* Returns the setting "KEY.start". `key` and `domain` are as for setting_schedule(). */
Value plateau_node(Lower *l, const Plateau *p, const char *key, ampc_domain domain, Span span);
/* Runs after all blocks: finds the metrics. */
void plateaus_settle(Lower *l);
extern const Native plateau_natives[];
