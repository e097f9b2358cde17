/* Two texts line by line: the shortest list of lines to leave out and to add (Myers, 1986). */
#include "repl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EDITS = 4000 /* beyond that the texts have little in common */ };

/* A text cut into lines, which stay in the text; `key` is allocated, one a line. */
typedef struct Lines {
  const char **at;
  size_t *size;
  char **key;
  int n;
} Lines;

static void *checked(void *p)
{
  if (!p) arena_out_of_memory();
  return p;
}

static void split(const char *text, LineKey *key, Lines *out)
{
  int cap = 0;
  *out = (Lines){0};
  for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n') {
    size_t n = strcspn(s, "\n");
    if (out->n == cap) {
      cap = cap ? 2 * cap : 256;
      out->at = checked(realloc(out->at, (size_t)cap * sizeof *out->at));
      out->size = checked(realloc(out->size, (size_t)cap * sizeof *out->size));
      out->key = checked(realloc(out->key, (size_t)cap * sizeof *out->key));
    }
    out->at[out->n] = s;
    out->size[out->n] = n;
    out->key[out->n] = checked(malloc(n + 1));
    key(s, n, out->key[out->n]);
    out->n++;
  }
}

static void release(Lines *l)
{
  for (int i = 0; i < l->n; i++) free(l->key[i]);
  free(l->key);
  free(l->at);
  free(l->size);
}

/* "- line", "+ line" */
static void put(char mark, const Lines *l, int i)
{
  printf("%c %.*s\n", mark, (int)l->size[i], l->at[i]);
}

/* Myers walks a grid from (0, 0) to (lines of a, lines of b): right leaves out a line of a,
 * down adds one of b, and diagonal steps over equal lines are free. Diagonal k is x - y. */
typedef struct Search {
  const Lines *a, *b;
  LineKey *shown;
  int **furthest; /* of each number of edits: how far on each diagonal */
  int edits;
  bool differs;
} Search;

static bool equal(const Search *s, int x, int y)
{
  return strcmp(s->a->key[x], s->b->key[y]) == 0;
}

/* furthest[d][k + d]: x on diagonal k = x - y after d edits. */
static bool find_path(Search *s)
{
  int n = s->a->n, m = s->b->n;
  for (int d = 0; d <= n + m && d <= MOST_EDITS; d++) {
    int *now = checked(malloc(((size_t)2 * (size_t)d + 1) * sizeof *now));
    const int *before = d ? s->furthest[d - 1] : NULL;
    s->furthest[d] = now;
    s->edits = d;
    for (int k = -d; k <= d; k += 2) {
      int x = 0;
      if (d) {
        int down = k < d ? before[k + 1 + d - 1] : -1;       /* a line of b is added */
        int right = k > -d ? before[k - 1 + d - 1] + 1 : -1; /* a line of a is left out */
        x = down >= right ? down : right;
      }
      while (x < n && x - k < m && x - k >= 0 && equal(s, x, x - k)) x++;
      now[k + d] = x;
      if (x >= n && x - k >= m) return true;
    }
  }
  return false;
}

/* Two lines that pair up: shown as changed if they differ in what the user sees. */
static void put_match(Search *s, int x, int y)
{
  char *a = checked(malloc(s->a->size[x] + 1)), *b = checked(malloc(s->b->size[y] + 1));
  s->shown(s->a->at[x], s->a->size[x], a);
  s->shown(s->b->at[y], s->b->size[y], b);
  if (strcmp(a, b) != 0) {
    s->differs = true;
    put('-', s->a, x);
    put('+', s->b, y);
  }
  free(a);
  free(b);
}

/* Prints the path. Going back from its end tells each edit (xs[d]: was it an added line?); going
 * forward from its beginning prints them. */
static void put_path(Search *s)
{
  int *xs = checked(malloc(((size_t)s->edits + 1) * sizeof *xs));
  int x = s->a->n, y = s->b->n;
  for (int d = s->edits; d > 0; d--) {
    const int *before = s->furthest[d - 1];
    int k = x - y;
    int down = k < d ? before[k + 1 + d - 1] : -1, right = k > -d ? before[k - 1 + d - 1] + 1 : -1;
    bool added = down >= right;
    xs[d] = added;
    x = added ? down : right - 1;
    y = x - (added ? k + 1 : k - 1);
  }
  x = y = 0;
  for (int d = 0; d <= s->edits; d++) {
    if (d) {
      s->differs = true;
      xs[d] ? put('+', s->b, y++) : put('-', s->a, x++);
    }
    while (x < s->a->n && y < s->b->n && equal(s, x, y)) put_match(s, x++, y++);
  }
  free(xs);
}

/* Texts that differ too much are not listed: the search takes memory with the square of the
 * edits. */
bool diff_lines(const char *a, const char *b, LineKey *key, LineKey *shown)
{
  Lines from, to;
  split(a, key, &from);
  split(b, key, &to);
  Search s = {&from, &to, shown, NULL, 0, false};
  s.furthest = checked(calloc((size_t)MOST_EDITS + 2, sizeof *s.furthest));
  if (find_path(&s)) {
    put_path(&s);
  } else {
    printf("more than %d lines differ\n", MOST_EDITS);
    s.differs = true;
  }
  for (int i = 0; i <= s.edits; i++) free(s.furthest[i]);
  free(s.furthest);
  release(&from);
  release(&to);
  return s.differs;
}
