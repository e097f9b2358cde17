/* Computes instructions of tensor cores: see matrix.h. Lane i has row i / 4 of a matrix [8, 8] and
 * there the columns i % 4 * 2 and the next one, in one word. */
#include "matrix.h"
#include "machine.h"
#include "runtime/base/convert.h"
#include <stdbool.h>
#include <string.h>

enum { LANES = 32 };

/* Loads four matrices. Lane i has the address of row i % 8 of matrix i / 8. */
static void load(unsigned first, uint32_t *const lanes[LANES], bool transposed)
{
  uint16_t of[4][8][8] = {{{0}}};
  for (unsigned i = 0; i < LANES; i++) simt_read_row(first + i, lanes[i][0], of[i / 8][i % 8]);
  for (unsigned i = 0; i < LANES; i++)
    for (unsigned m = 0, row = i / 4, column = i % 4 * 2; m < 4; m++) {
      uint32_t low = transposed ? of[m][column][row] : of[m][row][column];
      uint32_t high = transposed ? of[m][column + 1][row] : of[m][row][column + 1];
      lanes[i][m] = high << 16 | low;
    }
}

/* Adds the product of a [16, 16] and b [16, 8] to the sums [16, 8]. A lane has four words of a,
 * from the matrices [8, 8] at the upper left, lower left, upper right and lower right; two of b
 * transposed, left and right; and four sums, two of row i / 4 and two of that 8 rows below. The
 * products are exact. The sum is computed in double and rounded once. */
static void add(ampc_dtype type, uint32_t *const lanes[LANES])
{
  float a[16][16], b[8][16], sum;
  for (unsigned i = 0; i < LANES; i++) {
    unsigned row = i / 4, column = i % 4 * 2;
    for (unsigned k = 0; k < 4; k++)
      convert_widen(type, &lanes[i][k], &a[row + k % 2 * 8][column + k / 2 * 8], 2);
    for (unsigned k = 0; k < 2; k++)
      convert_widen(type, &lanes[i][4 + k], &b[row][column + k * 8], 2);
  }
  for (unsigned i = 0; i < LANES; i++)
    for (unsigned k = 0; k < 4; k++) {
      unsigned row = i / 4 + k / 2 * 8, column = i % 4 * 2 + k % 2;
      memcpy(&sum, &lanes[i][6 + k], sizeof sum);
      double total = (double)sum;
      for (unsigned n = 0; n < 16; n++) total += (double)a[row][n] * (double)b[column][n];
      sum = (float)total;
      memcpy(&lanes[i][k], &sum, sizeof sum);
    }
}

void simt_matrix_rows(unsigned first, uint32_t *const lanes[LANES])
{
  load(first, lanes, false);
}

void simt_matrix_columns(unsigned first, uint32_t *const lanes[LANES])
{
  load(first, lanes, true);
}

void simt_matrix_add_f16(unsigned first, uint32_t *const lanes[LANES])
{
  (void)first;
  add(AMPC_F16, lanes);
}

void simt_matrix_add_bf16(unsigned first, uint32_t *const lanes[LANES])
{
  (void)first;
  add(AMPC_BF16, lanes);
}
