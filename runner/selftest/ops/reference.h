/* What the references of several families share. All of them are plain loops in double. */
#pragma once
#include "table.h"

ShapeOf shape_of_first, shape_of_second, shape_given_of, shape_broadcast_of, shape_row_of;
ShapeOf shape_sized_of; /* that of input 0, with `size` along its axis `dim` */
Reference reference_map, reference_same_order, reference_moved, reference_picked;
Terms terms_of_row;

/* Sets the scales of results that nothing cancels in: |y|. */
void scale_as_size(const Tensor *y, double *scale);
/* Starts sums: all zero. */
void clear_sums(Tensor *y, double *scale);
/* Which element of `from` meets element i of `to`, that it is broadcast to. */
int64_t broadcast_index(const Tensor *from, const Tensor *to, int64_t i);
/* Drops the axes that are gone from input 0's shape; keep: makes them 1. */
void drop_axes(const Case *t, Tensor *y, bool (*gone)(const Case *t, uint32_t axis), bool keep);

/* Rows: the elements along one axis, one row after the other:
 *   for (Rows r = rows_of(x, axis); next_row(&r);)
 *     EACH(i, r) x->at[i] .. */
typedef struct Rows {
  int64_t n, length, stride; /* rows; elements of one; between neighbours of a row */
  int64_t row, start, end;   /* the row that is looked at, its first element, and behind its last */
} Rows;
#define EACH(i, r) for (int64_t i = (r).start; i != (r).end; i += (r).stride)
Rows rows_of(const Tensor *x, int axis); /* before the first row */
bool next_row(Rows *r);                  /* false: there is none */
double row_mean(const double *x, const Rows *r);
/* Greatest element and the sum of e^(x - greatest); the terms of the greatest ones are 1, also
 * where it is infinite. */
double row_sum(const double *x, const Rows *r, double *max);
bool row_undefined(const double *x, const Rows *r); /* its softmax is NaN */
