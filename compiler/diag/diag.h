/* Source locations and messages about them.
 *
 * A location is a span of byte offsets in the concatenation of all sources. File, line and column
 * are computed only when a message is printed. A mistake of the user is reported with diag_error,
 * and the compile continues with the next statement. After 20 errors (--error-limit) further errors
 * are counted but not printed. A bug of the compiler is an assert, never a message. */
#pragma once
#include "compiler/base/arena.h"

typedef struct Compile Compile;

typedef struct Span {
  uint32_t start, end; /* half open, [start, end); {0,0}: no location */
} Span;

/* errors.def: AMPC_ERROR(E301, "title", "wrong program", "right program"), in numeric order. Codes
 * that start with W are warnings; the name for -Wno-NAME follows the code. */
typedef enum ErrorCode {
#define AMPC_ERROR(code, ...)   code,
#define AMPC_WARNING(code, ...) code,
#include "errors.def"
  ERROR_COUNT
} ErrorCode;

typedef struct Source {
  const char *path; /* as the user wrote it */
  const char *text;
  uint32_t base, size; /* base: offset among all sources; size: bytes */
  bool builtin;        /* belongs to the layer library: never printed as a location */
  const char *shown;   /* the path as it is printed: arena_shown */
  bool file;           /* read from `path`; else text of an option, of `amp repl` or of a program */
} Source;

/* Each prints one message, or collects it for --error-format=json. A note or help belongs to the
 * last error or warning. If the span is inside a builtin source, it is replaced by the innermost
 * call in the user's text: see diag_frame_push. The text is in lower case, has no full stop and
 * contains both values. The functions return false, so that a caller can report and return false in
 * one statement. */
bool diag_error(Compile *c, ErrorCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag_warning(Compile *c, ErrorCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool diag_note(Compile *c, Span span, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool diag_help(Compile *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Sets a note that follows each later error, such as "with S = 64". NULL: removes it. */
void diag_circumstance(Compile *c, Span span, const char *text);

bool diag_is_muted(const Compile *c); /* true: helps are not printed now, so need not be computed */

/* The stack of calls during elaboration, so that a message can name the user's line. */
void diag_frame_push(Compile *c, Span call);
void diag_frame_pop(Compile *c);
Span diag_user_span(Compile *c, Span span); /* `span` itself unless it is in a builtin source */

uint32_t diag_error_count(const Compile *c); /* with options.werror, warnings count */
/* True if an error (not a warning) starts inside the span. */
bool diag_error_within(const Compile *c, Span span);
/* Called after the last message: prints how many errors were hidden, or the open JSON object. */
void diag_finish(Compile *c);

typedef enum Severity { SEVERITY_error, SEVERITY_warning, SEVERITY_note, SEVERITY_help } Severity;

typedef struct Message {
  Severity severity;
  const char *code; /* "E301"; NULL for notes and helps */
  Span span;        /* {0,0}: no location */
  const char *text;
} Message;
/* Returns the messages of a compile with options.keep_messages. Notes and helps follow the error or
 * warning that they belong to. */
const Message *diag_kept(const Compile *c, uint32_t *n);

typedef struct Place {
  const Source *source;
  uint32_t line, column; /* both from 1; columns count bytes */
} Place;
Place diag_place(const Compile *c, Span span);
Place diag_user_place(Compile *c, Span span); /* place.source NULL: no line of the user's text */
/* Returns the whole line of a location, without its line end; "" if the source has no such line.
 * The text is not NUL-terminated. */
const char *diag_line_text(const Compile *c, const Place *place, uint32_t *size);

/* Adds a source. Its spans start at the returned offset. `text` must outlive the compile. */
uint32_t diag_add_source(Compile *c, const char *path, const char *text, uint32_t size,
                         bool builtin);

/* Prints an error's title, and a wrong and a right program. Returns false for an unknown code. */
bool diag_explain(const char *code);
bool diag_is_warning(const char *name); /* true if -Wno-NAME accepts this name */

/* Prints a help for a name that is not in `names`: the most similar name, else all names. */
bool diag_help_names(Compile *c, const char *name, const char *const *names, uint32_t n);

/* Returns the candidate with the most similar spelling; NULL if none is similar enough. */
const char *diag_nearest(const char *name, const char *const *candidates, uint32_t n);
