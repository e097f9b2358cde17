/* How sums along columns and long rows are cut up: the one place that knows, so that shapes,
 * launches and kernels agree. The rows of a matrix lie behind each other, neighbouring columns side
 * by side. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum {
  CUDA_BLOCK = 256,   /* threads of a block */
  COLUMN_LAST = 32768 /* elements of parts that one block joins in the time of a launch */
};

/* What a block takes at a time: lanes * vector columns. `lanes` threads stand side by side, and
 * CUDA_BLOCK / lanes behind each other; these share the rows out. */
typedef struct ColumnTile {
  uint32_t vector; /* neighbouring columns of a thread */
  uint32_t lanes;  /* a power of 2, 32 at most */
  int64_t tiles;   /* that [0, inner) is cut into; the last one may be cut off */
} ColumnTile;

/* 8, 4 or 1 numbers, `widest` at most, of which n are a whole number of vectors. */
uint32_t dividing_vector(int64_t n, uint32_t widest);

/* Of [outer, length, inner], where a thread may take up to `widest` columns: 8, 4 or 1. */
ColumnTile column_tile(int64_t outer, int64_t length, int64_t inner, uint32_t widest);
/* Of parts [n, inner] that are joined: `alone` by one block, behind those that have made them, for
 * which more tiles would only come one after the other; or by blocks of their own. Both add up in
 * the same order. */
ColumnTile column_join_tile(int64_t inner, bool alone);

/* Rows of a part, when [rows, channels] is reduced in parts; the last part may have fewer. By the
 * shape alone, never by the machine: the parts fix the order of the sum and so its bits. */
int64_t column_part_rows(int64_t rows, int64_t channels);
int64_t column_parts(int64_t rows, int64_t channels);

/* As how many columns the sum over the rows of [rows, columns] is cut into parts, for a GPU to be
 * busy: those that it has, or, where it is a sum of all there is, of neighbours that are summed
 * side by side. 0: it is short, has columns enough, or is of no number that divides. */
int64_t column_split(int64_t rows, int64_t columns);

/* Into how many parts the rows of [outer, length, inner] are cut, so that a GPU is busy. By the
 * shape alone, so that all programs over the same rows stay together. 1: there is work enough side
 * by side, they are short, or no number divides. */
int64_t row_split(int64_t outer, int64_t length, int64_t inner);
