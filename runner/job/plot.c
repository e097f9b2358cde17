/* Draws in the terminal: a curve with braille characters, which have 2 by 4 dots each, and a
 * histogram with bars. */
#include "plot.h"
#include "median.h"
#include "compiler/base/arena.h"
#include "common/terminal.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 12, LABEL = 10, MOST_COLUMNS = 400 };

/* Returns the columns of the terminal, or 80 if stdout is not a terminal. */
int plot_columns(void)
{
  int columns = terminal_columns(STDOUT_FILENO);
  if (columns < 30) columns = 80;
  return columns > MOST_COLUMNS ? MOST_COLUMNS : columns;
}

/* What a drawing shows: values from low to high. The others are counted. */
typedef struct Range {
  double low, high;
  size_t finite, above, below, peak; /* peak: the index of the highest value */
} Range;

/* Finds the range. It contains all finite values, unless some are so far from the middle 96 % that
 * these would be a flat line or a single bar. Of many values it sorts a part. Returns false if no
 * value is finite. */
static bool find_range(const double *at, size_t n, Range *out)
{
  enum { FAR = 10 /* times the height of the middle */, MOST_SORTED = 1 << 16 };
  size_t apart = n / MOST_SORTED | 1, m = 0; /* odd: not the same column of each row */
  double *sorted = malloc((n / apart + 1) * sizeof *sorted), bottom = INFINITY, top = -INFINITY;
  if (!sorted) arena_out_of_memory();
  *out = (Range){.low = INFINITY, .high = -INFINITY};
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(at[i])) continue;
    out->finite++;
    bottom = fmin(bottom, at[i]);
    if (at[i] > top) top = at[out->peak = i];
    if (i % apart == 0) sorted[m++] = at[i];
  }
  qsort(sorted, m, sizeof *sorted, compare_doubles);
  size_t few = m < 9 ? 0 : (m + 48) / 50;
  double low = m ? sorted[few] : 0, high = m ? sorted[m - 1 - few] : 0, height = high - low;
  if (height > 0 && low - bottom > FAR * height) bottom = low - height;
  if (height > 0 && top - high > FAR * height) top = high + height;
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(at[i])) continue;
    out->below += at[i] < bottom;
    out->above += at[i] > top;
    if (at[i] >= bottom) out->low = fmin(out->low, at[i]);
    if (at[i] <= top) out->high = fmax(out->high, at[i]);
  }
  free(sorted);
  return out->finite > 0;
}

/* Sets a dot. The bits of a braille character are numbered down its left column, then down its
 * right one. The lowest row was added later and has the highest bits. */
static void set_dot(unsigned char *cells, int columns, int x, int y)
{
  static const unsigned char bits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
  cells[y / 4 * columns + x / 2] |= bits[x % 2][y % 4];
}

/* Draws the curve: each column of dots is the mean of its steps; lines connect neighbours. */
static void draw(const double *at, size_t n, const Range *range, unsigned char *cells, int columns)
{
  int width = 2 * columns, height = 4 * ROWS, last = -1;
  double low = range->low, high = range->high;
  for (int x = 0; x < width; x++) {
    size_t from = n * (size_t)x / (size_t)width, to = n * ((size_t)x + 1) / (size_t)width,
           count = 0;
    double sum = 0;
    if (to <= from) to = from + 1;
    for (size_t i = from; i < to && i < n; i++)
      if (isfinite(at[i])) sum += fmin(fmax(at[i], low), high), count++;
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

/* Says which values are out of range. `what`: "step" or "element"; `first`: the first one's number.
 */
static void tell_hidden(const double *at, size_t n, const Range *range, const char *what,
                        size_t first)
{
  if (range->above)
    printf("%*sbeyond the plot: %zu of %zu %ss above %.4g, up to %.5g in %s %zu\n", LABEL + 1, "",
           range->above, n, what, range->high, at[range->peak], what, range->peak + first);
  if (range->below)
    printf("%*sbeyond the plot: %zu of %zu %ss below %.4g\n", LABEL + 1, "", range->below, n, what,
           range->low);
}

void plot_curve(const double *at, size_t n, const char *title, const char *axis)
{
  Range range;
  int columns = plot_columns() - LABEL - 2;
  unsigned char cells[ROWS * MOST_COLUMNS] = {0};
  if (!find_range(at, n, &range)) {
    puts("no finite value to draw");
    return;
  }
  if (range.low == range.high) range.low -= 0.5, range.high += 0.5;
  draw(at, n, &range, cells, columns);
  printf("%s\n", title);
  for (int row = 0; row < ROWS; row++) {
    bool labelled = row == 0 || row == ROWS - 1 || row == ROWS / 2;
    double value = range.high - (range.high - range.low) * (row * 4 + 1.5) / (4 * ROWS - 1);
    if (row == 0) value = range.high;
    if (row == ROWS - 1) value = range.low;
    if (labelled)
      printf("%*.4g \u2524", LABEL - 1, value);
    else
      printf("%*s \u2502", LABEL - 1, "");
    for (int x = 0; x < columns; x++) put_cell(cells[row * columns + x]);
    putchar('\n');
  }
  printf("%*s %s, last %.5g\n", LABEL, "", axis, at[n - 1]);
  tell_hidden(at, n, &range, "step", 1);
  if (range.finite < n)
    printf("%*snot finite: %zu of %zu steps\n", LABEL + 1, "", n - range.finite, n);
}

/* ---- histogram ---- */

/* Prints a bar, exact to an eighth of a column. A count above 0 is visible. */
static void put_bar(int64_t count, int64_t highest, int columns)
{
  static const char *const parts[] = {"",       "\u258f", "\u258e", "\u258d",
                                      "\u258c", "\u258b", "\u258a", "\u2589"};
  int eighths = (int)(8.0 * columns * (double)count / (double)highest + 0.5), used = eighths / 8;
  if (count && !eighths) eighths = 1;
  for (int i = 0; i < eighths / 8; i++) fputs("\u2588", stdout);
  fputs(parts[eighths % 8], stdout);
  printf("%*s", columns - used - (eighths % 8 > 0), "");
}

/* Divides the range into bins. A bin is one value if these are few integers. */
void plot_bars(const double *at, size_t elements, bool integers)
{
  enum { BINS = 16, MOST_VALUES = 32, COUNT = 11, SHARE = 9, LEAST = 4 };
  int64_t count[MOST_VALUES] = {0}, highest = 0;
  Range range;
  if (!find_range(at, elements, &range)) {
    puts("no finite value to draw");
    return;
  }
  double low = range.low, high = range.high;
  bool exact = integers && high - low < MOST_VALUES;
  int n = low == high ? 1 : exact ? (int)(high - low) + 1 : BINS;
  double width = exact || n == 1 ? 1 : high / BINS - low / BINS;
  for (size_t i = 0; i < elements; i++) {
    if (!(at[i] >= low && at[i] <= high)) continue;
    int bin = (int)fmin(fmax(floor(at[i] / width - low / width), 0), n - 1);
    if (++count[bin] > highest) highest = count[bin];
  }
  int columns = plot_columns() - LABEL - 3 - COUNT - SHARE;
  if (columns < LEAST) columns = LEAST;
  printf("%*s  %-*s%*s%*s\n", LABEL, exact ? "value" : "from", columns, "", COUNT, "elements",
         SHARE, "share");
  for (int i = 0; i < n; i++) {
    printf("%*.4g \u2524", LABEL, low + i * width);
    put_bar(count[i], highest, columns);
    printf("%*lld%*.1f %%\n", COUNT, (long long)count[i], SHARE - 2,
           100.0 * (double)count[i] / (double)elements);
  }
  tell_hidden(at, elements, &range, "element", 0);
}
