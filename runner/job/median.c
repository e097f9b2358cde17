#include "median.h"
#include <stdlib.h>

int compare_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(double *at, size_t n)
{
  if (n) qsort(at, n, sizeof *at, compare_doubles);
  return n ? at[n / 2] : 0;
}
