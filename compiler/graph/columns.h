/* How sums along columns and long rows are split. Only this file decides the split, so that shapes,
 * launches and kernels agree. Rows of a matrix follow each other in memory; the columns of a row
 * are adjacent. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum {
  CUDA_BLOCK = 256,   /* threads of a block */
  COLUMN_LAST = 32768 /* elements of parts that one block sums in the time of a launch */
};

/* The columns on which one block works: lanes * vector of them. A set of `lanes` threads reads
 * adjacent columns. The CUDA_BLOCK / lanes sets of a block divide the rows among them. */
typedef struct ColumnTile {
  uint32_t vector; /* adjacent columns per thread */
  uint32_t lanes;  /* a power of 2, at most 32 */
  int64_t tiles;   /* number of tiles in [0, inner); the last may be partial */
} ColumnTile;

/* Returns the largest vector width of 8, 4 and 1 that is at most `widest` and divides n. */
uint32_t dividing_vector(int64_t n, uint32_t widest);

/* Returns the tile for a sum over `length` of [outer, length, inner]. A thread reads at most
 * `widest` columns: 8, 4 or 1. */
ColumnTile column_tile(int64_t outer, int64_t length, int64_t inner, uint32_t widest);
/* Returns the tile for summing the results of n parts, [n, inner]. `alone`: the last block of the
 * same launch sums them, one tile after the other. Otherwise separate blocks sum them. Both add in
 * the same order. */
ColumnTile column_join_tile(int64_t inner, bool alone);

/* Return the rows per part and the number of parts, if [rows, channels] is reduced in parts; the
 * last part may have fewer rows. Both depend on the shape only, never on the machine, because the
 * parts determine the order of the sum and thus its bits. */
int64_t column_part_rows(int64_t rows, int64_t channels);
int64_t column_parts(int64_t rows, int64_t channels);

/* Decides whether the sum over the rows of [rows, columns] is split into parts, to keep a GPU busy.
 * Returns the number of columns of the split sum: `columns`, or for the sum of a whole tensor
 * (columns is 1) the number of adjacent elements that are summed in parallel. Returns 0 (no split)
 * if the sum is short, has enough columns, or no width divides it. */
int64_t column_split(int64_t rows, int64_t columns);

/* Returns the number of parts into which each row of [outer, length, inner] is split, to keep a GPU
 * busy. It depends on the shape only, so all row programs over the same rows can share a kernel.
 * Returns 1 (no split) if there are enough rows, they are short, or no number divides them. */
int64_t row_split(int64_t outer, int64_t length, int64_t inner);
