/* Sorted numbers and their median. */
#pragma once
#include <stddef.h>

int compare_doubles(const void *a, const void *b); /* for qsort: ascending, without NaN */
/* Sorts the numbers and returns the one in the middle; 0 if there is none. */
double median(double *at, size_t n);
