/* Draws a curve in the terminal with braille characters, which have 2 by 4 dots each. */
#include "plot.h"
#include "runtime/plan/terminal.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 12, LABEL = 10, MOST_COLUMNS = 400 };

/* Returns the columns of the terminal, or 80 if stdout is not a terminal. */
static int plot_columns(void)
{
  int columns = terminal_columns(STDOUT_FILENO);
  if (columns < 30) columns = 80;
  return columns > MOST_COLUMNS ? MOST_COLUMNS : columns;
}

/* Finds the smallest and the largest finite value; false: no value is finite. */
static bool find_range(const double *at, size_t n, double *low, double *high)
{
  *low = INFINITY;
  *high = -INFINITY;
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(at[i])) continue;
    *low = fmin(*low, at[i]);
    *high = fmax(*high, at[i]);
  }
  if (*low == *high) *low -= 0.5, *high += 0.5;
  return *low < *high;
}

/* Sets a dot. The bits of a braille character are numbered down its left column, then down its
 * right one. The lowest row was added later and has the highest bits. */
static void set_dot(unsigned char *cells, int columns, int x, int y)
{
  static const unsigned char bits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
  cells[y / 4 * columns + x / 2] |= bits[x % 2][y % 4];
}

/* Draws the curve: each column of dots is the mean of its steps; lines connect neighbours. */
static void draw(const double *at, size_t n, double low, double high, unsigned char *cells,
                 int columns)
{
  int width = 2 * columns, height = 4 * ROWS, last = -1;
  for (int x = 0; x < width; x++) {
    size_t from = n * (size_t)x / (size_t)width, to = n * ((size_t)x + 1) / (size_t)width,
           count = 0;
    double sum = 0;
    if (to <= from) to = from + 1;
    for (size_t i = from; i < to && i < n; i++)
      if (isfinite(at[i])) sum += at[i], count++;
    if (!count) {
      last = -1;
      continue;
    }
    int y = (int)((high - sum / (double)count) / (high - low) * (height - 1) + 0.5);
    int begin = last < 0 || last == y ? y : last < y ? last + 1 : last - 1;
    for (int k = begin; k != y; k += begin < y ? 1 : -1) set_dot(cells, columns, x, k);
    set_dot(cells, columns, x, y);
    last = y;
  }
}

/* Prints a braille character; they begin at U+2800 and have three bytes in UTF-8. */
static void put_cell(unsigned char dots)
{
  unsigned code = 0x2800u + dots;
  putchar((int)(0xe0u | code >> 12));
  putchar((int)(0x80u | (code >> 6 & 0x3fu)));
  putchar((int)(0x80u | (code & 0x3fu)));
}

void plot_curve(const double *at, size_t n, const char *title, const char *axis)
{
  double low, high;
  int columns = plot_columns() - LABEL - 2;
  unsigned char cells[ROWS * MOST_COLUMNS] = {0};
  if (!find_range(at, n, &low, &high)) {
    puts("no finite value to draw");
    return;
  }
  draw(at, n, low, high, cells, columns);
  printf("%s\n", title);
  for (int row = 0; row < ROWS; row++) {
    bool labelled = row == 0 || row == ROWS - 1 || row == ROWS / 2;
    double value = high - (high - low) * (row * 4 + 1.5) / (4 * ROWS - 1);
    if (row == 0) value = high;
    if (row == ROWS - 1) value = low;
    if (labelled)
      printf("%*.4g \u2524", LABEL - 1, value);
    else
      printf("%*s \u2502", LABEL - 1, "");
    for (int x = 0; x < columns; x++) put_cell(cells[row * columns + x]);
    putchar('\n');
  }
  printf("%*s %s, last %.5g\n", LABEL, "", axis, at[n - 1]);
}
