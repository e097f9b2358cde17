/* Metrics on the host: computes them from their statistics. */
#pragma once
#include "ampc_metrics.h"
#include "runtime/runtime.h"
#include <stdio.h>

/* Returns the value of a metric, computed from its ampc_metric, or from one ampc_metric per
 * statistic. NaN if no sample was counted, if the metric is a matrix, or if a label is not a
 * class. */
double metric_value(const ampc_metric_desc *m, const ampc_metric *slots);
/* Whether the metric is one number: neither a matrix nor the norms of updates. */
bool metric_is_number(const ampc_metric_desc *m);
/* Returns the number of classes: rows, and columns, of a confusion matrix. */
uint32_t metric_classes(const ampc_metric_desc *m);
/* Prints a confusion matrix with aligned numbers. Rows are true classes, columns predicted ones. */
void metric_print_matrix(FILE *to, const ampc_metric_desc *m, const ampc_metric *slots);
/* Reads all ampc_metrics of a metric. Waits for the device. */
ampc_status metric_read(ampc_runtime *rt, uint32_t metric, ampc_metric *out);
