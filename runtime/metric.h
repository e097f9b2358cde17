/* Metrics on the host: what they are worked out of. */
#pragma once
#include "runtime/runtime.h"
#include <stdio.h>

/* A metric of its ampc_metric, or of those of its statistics; NaN where there is nothing to work it
 * out of, or no single number: of a matrix, where a label was no class. */
double metric_value(const ampc_metric_desc *m, const ampc_metric *slots);
/* Whether it is one number. */
bool metric_is_number(const ampc_metric_desc *m);
/* Rows and columns of a confusion matrix. */
uint32_t metric_classes(const ampc_metric_desc *m);
/* A line a row, numbers aligned: rows are true classes, columns predicted ones. */
void metric_print_matrix(FILE *to, const ampc_metric_desc *m, const ampc_metric *slots);
/* All ampc_metrics of a metric. Waits. */
ampc_status metric_read(ampc_runtime *rt, uint32_t metric, ampc_metric *out);
