/* How sums along columns and long rows are split. Only this file decides it, so that shapes,
 * launches and kernels agree. Rows of a matrix follow each other in memory; the columns of a row
 * are adjacent. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum {
  CUDA_BLOCK = 256,   /* threads of a block */
  COLUMN_LAST = 32768 /* elements of parts that one block sums in the time of a launch */
};

/* A block works on lanes * vector columns. `lanes` threads read adjacent columns. There are
 * CUDA_BLOCK / lanes such sets of threads, which divide the rows among them. */
typedef struct ColumnTile {
  uint32_t vector; /* adjacent columns per thread */
  uint32_t lanes;  /* a power of 2, at most 32 */
  int64_t tiles;   /* number of tiles in [0, inner); the last may be partial */
} ColumnTile;

/* The vector width 8, 4 or 1, at most `widest`, that divides n. */
uint32_t dividing_vector(int64_t n, uint32_t widest);

/* The tile for [outer, length, inner]. A thread may read up to `widest` columns: 8, 4 or 1. */
ColumnTile column_tile(int64_t outer, int64_t length, int64_t inner, uint32_t widest);
/* The tile for summing parts [n, inner]. `alone`: one block sums them, after the blocks that have
 * made them; it would run several tiles one after the other. Otherwise separate blocks sum them.
 * Both add in the same order. */
ColumnTile column_join_tile(int64_t inner, bool alone);

/* Number of rows per part, if [rows, channels] is reduced in parts; the last part may have fewer.
 * It depends on the shape only, never on the machine: the parts determine the order of the sum and
 * thus its bits. */
int64_t column_part_rows(int64_t rows, int64_t channels);
int64_t column_parts(int64_t rows, int64_t channels);

/* The number of columns in which the sum over the rows of [rows, columns] is split into parts, to
 * keep a GPU busy. It is `columns`. For a sum of a whole tensor (columns is 1), it is a number of
 * adjacent elements that are summed in parallel. 0: do not split, since the sum is short, has
 * enough columns, or no width divides it. */
int64_t column_split(int64_t rows, int64_t columns);

/* The number of parts into which the rows of [outer, length, inner] are split, to keep a GPU busy.
 * It depends on the shape only, so all row programs over the same rows stay together. 1: do not
 * split, since there are enough rows or they are short, or no number divides them. */
int64_t row_split(int64_t outer, int64_t length, int64_t inner);
