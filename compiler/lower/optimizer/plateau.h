/* The schedule that waits for a metric of an eval block. */
#pragma once
#include "compiler/lower/lower.h"

typedef struct Plateau {
  const char *metric; /* as it was named */
  double start;
  ampc_plateau rule; /* without its setting and its metric, as long as they are not known */
  Span span;
} Plateau;

/* The setting "KEY.start" of such a schedule; `key` and `domain` as of setting_schedule. */
Value plateau_node(Lower *l, const Plateau *p, const char *key, ampc_domain domain, Span span);
/* After all blocks: finds the metrics. */
void plateaus_settle(Lower *l);
extern const Native plateau_natives[];
