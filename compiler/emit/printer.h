/* Printing of emitted text, line by line, remembering who wrote each line. */
#pragma once
#include "compiler/base/compile.h"

typedef struct Printer {
  Compile *c;
  Text *out;
  int indent;         /* levels of two spaces */
  bool line_open;     /* text stands on the current line already */
  uint32_t line;      /* of the output, from 1 */
  const char *source; /* the job's text above the last kernel: it is not quoted twice in a row */
} Printer;

/* Starts a text; forgets the lines of the one before (emit_blame answers for the last text). */
void printer_begin(Printer *p, Compile *c, Text *out);
/* Prints; '\n' ends a line, the next one starts with the indent. Use the macros below. */
void printer_put(Printer *p, const char *file, int at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for one line, from its beginning: a wide one is broken behind commas, and goes on with
 * `next`. */
void printer_wrap(Printer *p, const char *file, int at, const char *next, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* The same for a statement of C: a wide one, or one that its comment makes wide, is broken before
 * operators, else behind commas. */
void printer_statement(Printer *p, const char *file, int at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Text of an embedded file, as it stands; `name` is its path in the tree: "templates/device.cuh".
 * Blame gives that file's own lines, counted from `first_line`. */
void printer_text(Printer *p, const char *name, uint32_t first_line, const char *text, size_t n);

/* What another printer has written, with the places that it remembers: its Compile.blame. */
void printer_append(Printer *p, const Text *text, const void *blame);

/* EMIT(p, "real t%u = %s;\n", ...): the caller's place becomes the line's origin. */
#define EMIT(p, ...)               printer_put((p), __FILE__, __LINE__, __VA_ARGS__)
#define EMIT_WRAPPED(p, next, ...) printer_wrap((p), __FILE__, __LINE__, (next), __VA_ARGS__)
#define EMIT_STATEMENT(p, ...)     printer_statement((p), __FILE__, __LINE__, __VA_ARGS__)
