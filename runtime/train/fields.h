/* The numbers that logs report of a step, besides the metrics of the job: one list for
 * metrics.csv, TensorBoard's events and the lines of JSON. */
#pragma once
#include "ampc_metrics.h"
#include "train.h"

struct Field {
  char *name;         /* column of metrics.csv, and key in JSON: "scale.opt" */
  char *tag;          /* of TensorBoard: "scaler/scale/opt". The session owns both texts */
  const char *format; /* of the number in metrics.csv; it ends with .0f for integers */
  int row;            /* in the table of fields.c */
  const char *key;    /* of an optimizer or a group: its key, "opt.group1" */
  uint32_t optimizer; /* of an optimizer: its index */
  double value;       /* NaN: unknown, as a norm if no update was applied */
};

/* Fills s->fields, without values. The caller calls fields_free(), also after a failure. */
ampc_status fields_list(Session *s);
/* Sets the values for a sink that is about to report `r`; s->told has the sums since its last
 * report. */
void fields_set(Session *s, const Record *r);
void fields_free(Session *s);
bool field_is_integer(const Field *f);
/* Whether the metric is one of the job: a column of its own. */
bool field_is_metric(const ampc_metric_desc *m);
