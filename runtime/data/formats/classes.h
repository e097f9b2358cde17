/* Names of classes: a sorted set of texts, each with the number of its class. */
#pragma once
#include "ampc_plan.h"

enum { MOST_CLASSES = 1 << 14, MOST_CLASS_NAME = 255 /* bytes */ };

typedef struct ClassName {
  char *text;
  int64_t number; /* position in `args`, from 0; of added names -1 */
} ClassName;

typedef struct Classes {
  ClassName *at; /* sorted by text, byte by byte */
  int64_t n, room;
} Classes;

/* Reads the names of `args`, a line "class=NAME" each. The caller calls classes_free, also after a
 * failure. */
ampc_status classes_read(const char *args, Classes *out);
const ClassName *classes_find(const Classes *c, const char *text); /* NULL: no such class */
/* Adds a name that is not there yet. Refuses one that cannot be printed in one line. */
ampc_status classes_add(Classes *c, const char *text, int64_t number);
/* Returns the names in sorted order, as the lines of `args`. The caller frees them; NULL: memory
 * ran out. */
char *classes_lines(const Classes *c);
/* Finds the classes of a column in the text ampc_program.columns. Returns the number of bytes from
 * *out on: lines "class=NAME\n"; 0: the text does not have the column. */
size_t classes_of_column(const char *columns, const char *name, int size, const char **out);
void classes_free(Classes *c);
