/* Functions that the references of several families share, as plain loops in double. */
#pragma once
#include "table.h"

ShapeOf shape_of_first, shape_of_second, shape_given_of, shape_broadcast_of, shape_row_of;
ShapeOf shape_sized_of; /* input 0's shape, with `size` along its axis `dim` */
Reference reference_map, reference_same_order, reference_moved, reference_picked;
Terms terms_of_row;

/* Sets the scales to |y|, for results without cancellation. */
void scale_as_size(const Tensor *y, double *scale);
/* Sets all sums and scales to zero. */
void clear_sums(Tensor *y, double *scale);
/* Returns the index of the element of `from` that broadcasting pairs with element i of `to`. */
int64_t broadcast_index(const Tensor *from, const Tensor *to, int64_t i);
/* Gives y the shape of input 0 without the axes that are `gone`; `keep`: with size 1 for them. */
void drop_axes(const Case *t, Tensor *y, bool (*gone)(const Case *t, uint32_t axis), bool keep);

/* Rows: the elements along one axis, one row after the other:
 *   for (Rows r = rows_of(x, axis); next_row(&r);)
 *     EACH(i, r) x->at[i] .. */
typedef struct Rows {
  int64_t n, length, stride; /* number of rows; elements of a row; distance of neighbours */
  int64_t row, start, end;   /* the current row, its first element, the end after its last one */
} Rows;
#define EACH(i, r) for (int64_t i = (r).start; i != (r).end; i += (r).stride)
Rows rows_of(const Tensor *x, int axis); /* starts before the first row */
bool next_row(Rows *r);                  /* moves to the next row; false if no row is left */
double row_mean(const double *x, const Rows *r);
/* Returns the sum of e^(x - max) and sets *max to the largest element. The terms of elements equal
 * to *max are 1, also if *max is infinite. */
double row_sum(const double *x, const Rows *r, double *max);
bool row_undefined(const double *x, const Rows *r); /* true if the softmax of the row is NaN */
