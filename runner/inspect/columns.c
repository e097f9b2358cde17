/* Tables of text that fit a terminal. */
#include "columns.h"
#include <stdio.h>
#include <string.h>

enum { MARGIN = 2, LEAST_NAME = 12 };

static void widen(Column *c, const char *text)
{
  int n = (int)strlen(text);
  if (n > c->width) c->width = n;
}

void columns_see(Column *at, int n, const char *const *texts)
{
  for (int i = 0; i < n; i++) {
    widen(&at[i], at[i].title);
    widen(&at[i], texts[i]);
  }
}

static int row_width(const Column *at, int n)
{
  int width = MARGIN - 1;
  for (int i = 0; i < n; i++)
    if (at[i].width) width += at[i].width + 1;
  return width;
}

/* The column that goes next; -1: none may. */
static int find_dropped(const Column *at, int n)
{
  int found = -1;
  for (int i = 0; i < n; i++)
    if (at[i].width && at[i].drop && (found < 0 || at[i].drop > at[found].drop)) found = i;
  return found;
}

/* A name is shortened to a third of the line before anything else goes. */
void columns_fit(Column *at, int n, int columns)
{
  int over = row_width(at, n) - columns, least = columns / 3;
  if (!columns || over <= 0) return;
  if (least < LEAST_NAME) least = LEAST_NAME;
  if (at[0].width > least) at[0].width = at[0].width - over > least ? at[0].width - over : least;
  for (int i; row_width(at, n) > columns && (i = find_dropped(at, n)) >= 0;) at[i].width = 0;
}

/* What is too long ends in dots. */
static int put_cell(const Column *c, const char *text)
{
  int size = (int)strlen(text);
  if (size > c->width) return printf(" %.*s..", c->width - 2, text);
  return printf(c->left ? " %-*s" : " %*s", c->width, text);
}

void columns_put(const Column *at, int n, const char *const *texts, const char *rest, int columns)
{
  int used = printf("%*s", MARGIN - 1, "");
  for (int i = 0; i < n; i++)
    if (at[i].width) used += put_cell(&at[i], texts ? texts[i] : at[i].title);
  int room = columns - used - 2, size = (int)strlen(rest);
  if (*rest && (!columns || room > 8)) {
    bool cut = columns && size > room;
    printf("  %.*s%s", cut ? room - 2 : size, rest, cut ? ".." : "");
  }
  putchar('\n');
}
