/* What the references of several families share. All of them are plain loops in double. */
#pragma once
#include "table.h"

ShapeOf shape_of_first, shape_given_of, shape_broadcast_of, shape_row_of;
Reference reference_map, reference_same_order;
Terms terms_of_row;

/* Sets the scales of results that nothing cancels in: |y|. */
void scale_as_size(const Tensor *y, double *scale);
/* Starts sums: all zero. */
void clear_sums(Tensor *y, double *scale);
/* Elements between neighbours along each axis. */
void strides_of(const Tensor *x, int64_t *stride);
/* Which element of `from` meets element i of `to`, that it is broadcast to. */
int64_t broadcast_index(const Tensor *from, const Tensor *to, int64_t i);
/* Drops the axes that are gone from input 0's shape; keep: makes them 1. */
void drop_axes(const Case *t, Tensor *y, bool (*gone)(const Case *t, uint32_t axis), bool keep);

/* Rows: the elements along one axis. */
typedef struct Rows {
  int64_t n, length, stride; /* rows; elements of one; between neighbours of a row */
} Rows;
Rows rows_of(const Tensor *x, int axis);
int64_t row_start(const Rows *r, int64_t row); /* index of the row's first element */
double row_mean(const double *x, const Rows *r);
/* Greatest element and the sum of e^(x - greatest); the terms of the greatest ones are 1, also
 * where it is infinite. */
double row_sum(const double *x, const Rows *r, double *max);
double row_log_sum(const double *x, const Rows *r, double *max); /* log of the sum of e^x */
bool row_undefined(const double *x, const Rows *r);              /* its softmax is NaN */
