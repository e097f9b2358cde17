/* Names of classes. */
#include "classes.h"
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "common/shown.h"

static const char line[] = "class=";

/* Returns the position of the first name that does not precede `text`. */
static int64_t place_of(const Classes *c, const char *text)
{
  int64_t low = 0, high = c->n;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (strcmp(c->at[middle].text, text) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

const ClassName *classes_find(const Classes *c, const char *text)
{
  int64_t i = place_of(c, text);
  return i < c->n && strcmp(c->at[i].text, text) == 0 ? &c->at[i] : NULL;
}

static ampc_status check_name(const Classes *c, const char *text)
{
  char shown[4 * MOST_CLASS_NAME + 8];
  if (c->n == MOST_CLASSES)
    return ampc_fail(AMPC_BAD_FILE, "more than %d different names of classes", MOST_CLASSES);
  if (strlen(text) > MOST_CLASS_NAME)
    return ampc_fail(AMPC_BAD_FILE, "the name of a class has more than %d bytes: %.40s..",
                     MOST_CLASS_NAME, text);
  if (strcmp(ampc_show(shown, sizeof shown, text, ""), text) != 0)
    return ampc_fail(AMPC_BAD_FILE, "the name of a class is not printable UTF-8: %s", shown);
  return AMPC_OK;
}

ampc_status classes_add(Classes *c, const char *text, int64_t number)
{
  ampc_status status = check_name(c, text);
  if (status) return status;
  if (c->n == c->room) {
    int64_t room = c->room ? 2 * c->room : 16;
    ClassName *more = realloc(c->at, (size_t)room * sizeof *more);
    if (!more) return ampc_fail(AMPC_RUN_FAILED, "out of memory for names of classes");
    c->at = more;
    c->room = room;
  }
  int64_t i = place_of(c, text);
  char *copy = strdup(text);
  if (!copy) return ampc_fail(AMPC_RUN_FAILED, "out of memory for names of classes");
  memmove(&c->at[i + 1], &c->at[i], (size_t)(c->n - i) * sizeof *c->at);
  c->at[i] = (ClassName){copy, number};
  c->n++;
  return AMPC_OK;
}

ampc_status classes_read(const char *args, Classes *out)
{
  int n;
  ampc_status status = AMPC_OK;
  *out = (Classes){0};
  for (const char *at = args_next(args, "class", NULL, &n); at && !status;
       at = args_next(args, "class", at, &n)) {
    char *text = strndup(at, (size_t)n);
    if (!text) return ampc_fail(AMPC_RUN_FAILED, "out of memory for names of classes");
    status = classes_find(out, text) ? ampc_fail(AMPC_BAD_USAGE, "`classes` lists %s twice", text)
                                     : classes_add(out, text, out->n);
    free(text);
  }
  return status;
}

char *classes_lines(const Classes *c)
{
  size_t size = 1;
  for (int64_t i = 0; i < c->n; i++) size += strlen(c->at[i].text) + sizeof line;
  char *out = calloc(size, 1), *to = out;
  for (int64_t i = 0; i < c->n && out; i++)
    to = stpcpy(stpcpy(stpcpy(to, line), c->at[i].text), "\n");
  return out;
}

size_t classes_of_column(const char *columns, const char *name, int size, const char **out)
{
  int n;
  for (const char *at = args_next(columns, "column", NULL, &n); at;
       at = args_next(columns, "column", at, &n)) {
    if (n != size || memcmp(at, name, (size_t)n) != 0) continue;
    const char *end = *out = at + n + (at[n] == '\n');
    for (const char *next; strncmp(end, line, sizeof line - 1) == 0; end = next + 1)
      if (!(next = strchr(end, '\n'))) return 0;
    return (size_t)(end - *out);
  }
  return 0;
}

void classes_free(Classes *c)
{
  for (int64_t i = 0; i < c->n; i++) free(c->at[i].text);
  free(c->at);
  *c = (Classes){0};
}
