/* The schedule that waits for a metric of an eval block. */
#pragma once
#include "compiler/lower/lower.h"

typedef struct Plateau {
  const char *metric; /* the metric's name in the program */
  double start;
  bool of_metric;    /* the metric's mode decides `highest` */
  ampc_plateau rule; /* rule.setting and rule.metric are set when they are known */
  Span span;
} Plateau;

/* Returns the setting "KEY.start". `key` and `domain` are as for setting_schedule(). */
Value plateau_node(Lower *l, const Plateau *p, const char *key, ampc_domain domain, Span span);
/* Runs after all blocks: finds the metrics. */
void plateaus_settle(Lower *l);
extern const Native plateau_natives[];
