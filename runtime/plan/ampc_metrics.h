/* The metrics of a program. This is apart from ampc_plan.h so that a new kind of metric rebuilds
 * only what computes and prints metrics. */
#ifndef AMPC_METRICS_H
#define AMPC_METRICS_H
#include "ampc_plan.h"

/* How a metric is computed from its statistics, which are sums over all samples; runtime/metric.c
 * has the formulas. Counts are a matrix [true, predicted] of samples, or three numbers per class:
 * `right` of all classes, then `predicted`, then `true`. The last count is the number of labels
 * that are not a class. The last column is the mode of a metric that the job gives none. */
#define AMPC_METRICS(ROW)                                                                          \
  ROW(MEAN, mean, NONE)            /* mean over samples; has no statistics */                      \
  ROW(PERPLEXITY, perplexity, MIN) /* sum of the losses; number of losses */                       \
  ROW(PEARSON, pearson, MAX)       /* number of elements; sums of x, y, x^2, y^2, x y */           \
  ROW(RMSE, rmse, MIN)             /* sum of the squared errors; number of errors */               \
  ROW(R2, r2, MAX)                 /* per column: n; sums of y, y^2, (y - x)^2; see metric.c */    \
  ROW(AUC, auc, MAX)               /* counts per class and bin of scores. Rows below: counts */    \
  ROW(F1_MACRO, f1_macro, MAX)                                                                     \
  ROW(F1_MICRO, f1_micro, MAX)                                                                     \
  ROW(F1_WEIGHTED, f1_weighted, MAX)                                                               \
  ROW(F1_BINARY, f1_binary, MAX)                                                                   \
  ROW(IOU_MACRO, iou_macro, MAX)                                                                   \
  ROW(IOU_MICRO, iou_micro, MAX)                                                                   \
  ROW(IOU_WEIGHTED, iou_weighted, MAX)                                                             \
  ROW(IOU_BINARY, iou_binary, MAX)                                                                 \
  ROW(MATTHEWS, matthews, MAX)                                                                     \
  ROW(CONFUSION, confusion, NONE) /* a matrix, not a single number */                              \
  ROW(UPDATES, updates, NONE)     /* of a group of parameters: see ampc_updates */

typedef enum ampc_metric_kind {
#define AMPC_METRIC_KIND(KIND, name, mode) AMPC_METRIC_##KIND,
  AMPC_METRICS(AMPC_METRIC_KIND)
#undef AMPC_METRIC_KIND
      AMPC_METRIC_KIND_COUNT
} ampc_metric_kind;

/* The statistics of a metric of kind UPDATES. They are means over the updates of a group that were
 * applied, so their `count` counts updates. The first three are squares of L2 norms: of the
 * gradients after unscaling and before clipping, of the weights after the update, and of the
 * weights' change. `last` of the rate is that of the last update. */
typedef enum ampc_updates {
  AMPC_UPDATES_GRAD,
  AMPC_UPDATES_WEIGHT,
  AMPC_UPDATES_CHANGE,
  AMPC_UPDATES_RATE,
  AMPC_UPDATES_COUNT
} ampc_updates;

struct ampc_metric_desc {
  const char *name; /* of kind UPDATES "update." and the key of the group: "update.opt.group1" */
  bool is_loss;     /* the value that `minimize` minimizes */
  ampc_metric_kind kind;
  uint32_t statistics; /* number of statistics; 0: the metric is a mean */
  ampc_mode mode;      /* of the job, or of the function that computes a mean; see ampc_mode_of */
  const char *classes; /* names of the classes of a confusion matrix, a line each; NULL: none */
};

#endif
