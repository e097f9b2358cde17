/* Drawings in the terminal. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Returns the columns for a drawing: those of the terminal, or 80. */
int plot_columns(void);
/* Prints a curve of n values on stdout: `title` above it, and below it `axis`, which says what the
 * first and the last value belong to, and the last value. Values that are far from almost all
 * others are left out and counted. */
void plot_curve(const double *at, size_t n, const char *title, const char *axis);
/* Prints a histogram. `integers`: the values are integers, so that few of them have a bar each. */
void plot_bars(const double *at, size_t elements, bool integers);
