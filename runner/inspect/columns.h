/* Tables of text that fit a terminal. */
#pragma once
#include <stdbool.h>

typedef struct Column {
  const char *title;
  int width; /* of the widest text, from columns_see on; 0 hides it */
  bool left; /* else numbers, flush right */
  int drop;  /* on a narrow terminal those of a higher number go first; 0 stays */
} Column;

void columns_see(Column *at, int n, const char *const *texts); /* a row that is to be printed */
/* Hides and shortens until a row of all has `columns` characters; 0: nothing is changed. The first
 * column is the one that is shortened. */
void columns_fit(Column *at, int n, int columns);
/* A row, and `rest` behind it as far as there is room (0: all of it). NULL texts: the titles. */
void columns_put(const Column *at, int n, const char *const *texts, const char *rest, int columns);
