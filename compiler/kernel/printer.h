/* Prints emitted text line by line and records which source line printed each line. */
#pragma once
#include "compiler/base/compile.h"

typedef struct Printer {
  Compile *c;
  Text *out;
  int indent;         /* levels of two spaces */
  bool line_open;     /* the current line has text already */
  bool bare;          /* prints for comparison: no comments, no names, lines of any width */
  uint32_t line;      /* the current line of the output, counted from 1 */
  const char *source; /* the job's text above the last kernel, which is not quoted twice in a row */
} Printer;

/* Starts a text and forgets the lines of the previous one: emit_blame knows only the last text. */
void printer_begin(Printer *p, Compile *c, Text *out);
/* Prints. '\n' ends a line; the next line starts with the indent. Use the macros below. */
void printer_put(Printer *p, const char *file, int at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints one whole line. A wide line is broken after commas and continues with `next`. */
void printer_wrap(Printer *p, const char *file, int at, const char *next, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Prints a C statement. A statement that is too wide, with or without its comment, is broken before
 * operators, otherwise after commas. */
void printer_statement(Printer *p, const char *file, int at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints text of an embedded file unchanged. `name` is the file's path in the tree, such as
 * "templates/device.cuh". --blame reports that file's own lines, counted from `first_line`. */
void printer_text(Printer *p, const char *name, uint32_t first_line, const char *text, size_t n);

/* Appends what another printer has printed, with the origins of its lines, which are the other
 * printer's Compile.blame. */
void printer_append(Printer *p, const Text *text, const void *blame);

/* EMIT(p, "real t%u = %s;\n", ...) records the caller's line as the origin of the printed line. */
#define EMIT(p, ...)               printer_put((p), __FILE__, __LINE__, __VA_ARGS__)
#define EMIT_WRAPPED(p, next, ...) printer_wrap((p), __FILE__, __LINE__, (next), __VA_ARGS__)
#define EMIT_STATEMENT(p, ...)     printer_statement((p), __FILE__, __LINE__, __VA_ARGS__)
