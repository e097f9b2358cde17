/* --explain-error, and spelling suggestions. */
#include "diag_internal.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

const ErrorInfo error_info[ERROR_COUNT] = {
#define AMPC_ERROR(code, title, wrong, right)         [code] = {#code, NULL, title, wrong, right},
#define AMPC_WARNING(code, name, title, wrong, right) [code] = {#code, name, title, wrong, right},
#include "errors.def"
};

/* Prints a program, indented. */
static void print_program(const char *what, const char *text)
{
  printf("\n%s:\n", what);
  for (const char *line = text; *line;) {
    size_t n = strcspn(line, "\n");
    printf("    %.*s\n", (int)n, line);
    line += n + (line[n] == '\n');
  }
}

bool diag_explain(const char *code)
{
  for (int i = 0; i < ERROR_COUNT; i++) {
    const ErrorInfo *e = &error_info[i];
    if (strcasecmp(e->code, code) != 0) continue;
    printf("%s: %s\n", e->code, e->title);
    if (e->name) printf("a warning, switched off by -Wno-%s\n", e->name);
    print_program("wrong", e->wrong);
    print_program("right", e->right);
    return true;
  }
  return false;
}

bool diag_is_warning(const char *name)
{
  for (int i = 0; i < ERROR_COUNT; i++)
    if (error_info[i].name && strcmp(error_info[i].name, name) == 0) return true;
  return false;
}

enum { LONGEST_NAME = 63 };

/* Returns the edit distance from a to b in half edits. To insert, delete or substitute a letter
 * costs 2. Slips that rarely make another name cost 1: two adjacent letters are swapped, a letter
 * is doubled or a double one halved, or the case of a letter differs. If only cases differ, the
 * distance is 0, or 1 if that of the first letter does. A swap looks back two rows, so three rows
 * of the table suffice. Both names have at most LONGEST_NAME characters. */
static unsigned distance(const char *a, const char *b)
{
  unsigned rows[3][LONGEST_NAME + 1], *before = rows[0], *last = rows[1], *row = rows[2];
  size_t n = strlen(a), m = strlen(b);
  if (strcasecmp(a, b) == 0) return *a != *b;
  for (size_t j = 0; j <= m; j++) last[j] = (unsigned)j * 2;
  for (size_t i = 1; i <= n; i++) {
    row[0] = (unsigned)i * 2;
    for (size_t j = 1; j <= m; j++) {
      unsigned change = a[i - 1] == b[j - 1] ? 0 : strncasecmp(a + i - 1, b + j - 1, 1) ? 2 : 1;
      unsigned best = last[j - 1] + change;
      unsigned less = last[j] + (i > 1 && a[i - 1] == a[i - 2] ? 1 : 2);
      unsigned more = row[j - 1] + (j > 1 && b[j - 1] == b[j - 2] ? 1 : 2);
      if (less < best) best = less;
      if (more < best) best = more;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          before[j - 2] + 1 < best)
        best = before[j - 2] + 1;
      row[j] = best;
    }
    unsigned *oldest = before;
    before = last, last = row, row = oldest;
  }
  return last[m];
}

/* A longer name may have more edits: one letter turns `glu` into another name, `gelu`, but
 * `dropoout` can only be a slip. */
const char *diag_nearest(const char *name, const char *const *candidates, uint32_t n)
{
  size_t size = strlen(name);
  if (!size || size > LONGEST_NAME) return NULL;
  const char *best = NULL;
  unsigned limit = size <= 4 ? 1 : size <= 7 ? 2 : 4; /* in half edits */
  for (uint32_t i = 0; i < n; i++) {
    if (strlen(candidates[i]) > LONGEST_NAME) continue;
    unsigned d = distance(name, candidates[i]);
    if (d <= limit && d < 2 * size) {
      limit = d ? d - 1 : 0; /* if several names are equally similar, keep the first */
      best = candidates[i];
      if (!d) break;
    }
  }
  return best;
}

bool diag_help_names(Compile *c, const char *name, const char *const *names, uint32_t n)
{
  const char *near = diag_nearest(name, names, n);
  if (near) return diag_help(c, "did you mean `%s`?", near);
  if (!n) return false;
  Text list = text_new(c->arena);
  for (uint32_t i = 0; i < n; i++) text_printf(&list, "%s`%s`", i ? ", " : "", names[i]);
  return diag_help(c, "there %s %s", n == 1 ? "is" : "are", list.at);
}
