/* Curves in the terminal. */
#pragma once
#include <stddef.h>

/* Prints a curve of n values on stdout: `title` above it, and below it `axis`, which says what the
 * first and the last value belong to, and the last value. */
void plot_curve(const double *at, size_t n, const char *title, const char *axis);
