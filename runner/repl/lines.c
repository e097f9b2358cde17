/* Compares two texts line by line: finds the shortest list of lines to remove and to add (Myers,
 * 1986). */
#include "repl.h"
#include <stdio.h>
#include <string.h>

enum { MOST_EDITS = 4000 /* texts with more edits have little in common */ };

typedef struct Line { /* `at` points into its text; lines are compared by `key` */
  const char *at, *key;
  size_t size;
} Line;
typedef VEC(Line) Lines;

static const char *key_of(Arena *arena, LineKey *key, const char *line, size_t size)
{
  char *out = arena_array(arena, char, size + 1);
  key(line, size, out);
  return out;
}

static Lines split(Arena *arena, const char *text, LineKey *key)
{
  Lines out = {0};
  for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n') {
    size_t n = strcspn(s, "\n");
    Line line = {s, key_of(arena, key, s, n), n};
    vec_push(arena, &out, line);
  }
  return out;
}

/* Prints "- line" or "+ line". */
static void put(char mark, const Line *l)
{
  printf("%c %.*s\n", mark, (int)l->size, l->at);
}

/* Myers' algorithm finds a path through a grid from (0, 0) to (lines of a, lines of b). A step
 * right removes a line of a, a step down adds a line of b, and diagonal steps are free; they pass
 * lines with the same key. Diagonal k is x - y. */
typedef struct Search {
  Arena *arena;
  const Line *a, *b;
  int n_a, n_b;
  LineKey *shown;
  int **furthest; /* furthest[d][k + d]: the furthest x on diagonal k after d edits */
  int edits;
  bool differs;
} Search;

static bool equal(const Search *s, int x, int y)
{
  return strcmp(s->a[x].key, s->b[y].key) == 0;
}

/* Returns the x at which edit d reaches diagonal k. `before`: the furthest x of each diagonal after
 * d - 1 edits. *added: edit d adds a line of b; false: it removes a line of a. */
static int step(const int *before, int d, int k, bool *added)
{
  int down = k < d ? before[k + d] : -1, right = k > -d ? before[k + d - 2] + 1 : -1;
  *added = down >= right;
  return *added ? down : right;
}

/* Finds the path and fills in `furthest`. False: the texts differ by too many edits. */
static bool find_path(Search *s)
{
  int n = s->n_a, m = s->n_b;
  for (int d = 0; d <= n + m && d <= MOST_EDITS; d++) {
    int *now = arena_array(s->arena, int, (size_t)2 * (size_t)d + 1);
    const int *before = d ? s->furthest[d - 1] : NULL;
    s->furthest[d] = now;
    s->edits = d;
    for (int k = -d; k <= d; k += 2) {
      bool added;
      int x = d ? step(before, d, k, &added) : 0;
      while (x < n && x - k < m && x - k >= 0 && equal(s, x, x - k)) x++;
      now[k + d] = x;
      if (x >= n && x - k >= m) return true;
    }
  }
  return false;
}

/* Prints x and y, which match by `key`, as a changed line if their `shown` keys differ. */
static void put_match(Search *s, const Line *x, const Line *y)
{
  const char *a = key_of(s->arena, s->shown, x->at, x->size);
  if (strcmp(a, key_of(s->arena, s->shown, y->at, y->size)) == 0) return;
  s->differs = true;
  put('-', x);
  put('+', y);
}

/* Prints the edits. Following the path back from its end finds each edit (added[d]); following it
 * forward prints them. */
static void put_path(Search *s)
{
  bool *added = arena_array(s->arena, bool, (size_t)s->edits + 1);
  int x = s->n_a, y = s->n_b;
  for (int d = s->edits; d > 0; d--) {
    int k = x - y;
    x = step(s->furthest[d - 1], d, k, &added[d]);
    y = x - k - added[d];
    x -= !added[d];
  }
  x = y = 0;
  for (int d = 0; d <= s->edits; d++) {
    if (d) {
      s->differs = true;
      added[d] ? put('+', &s->b[y++]) : put('-', &s->a[x++]);
    }
    while (x < s->n_a && y < s->n_b && equal(s, x, y)) put_match(s, &s->a[x++], &s->b[y++]);
  }
}

/* Does not list texts that differ too much, because memory grows with the square of the edits. */
bool diff_lines(const char *a, const char *b, LineKey *key, LineKey *shown)
{
  Arena *arena = arena_create();
  Lines from = split(arena, a, key), to = split(arena, b, key);
  Search s = {arena, from.at, to.at, (int)from.n, (int)to.n, shown, NULL, 0, false};
  s.furthest = arena_array(arena, int *, (size_t)MOST_EDITS + 2);
  if (find_path(&s)) {
    put_path(&s);
  } else {
    printf("more than %d lines differ\n", MOST_EDITS);
    s.differs = true;
  }
  arena_destroy(arena);
  return s.differs;
}
