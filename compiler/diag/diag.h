/* Places in the source and messages about them.
 *
 * A place is two byte offsets into all sources laid end to end; file, line and column are worked
 * out only when a message is printed. A user's mistake is reported with diag_error and the compile
 * goes on with the next statement; after 20 errors (--error-limit) further ones are counted, not
 * printed. Our own mistakes are asserts, never messages. */
#pragma once
#include "compiler/base/arena.h"

typedef struct Compile Compile;

typedef struct Span {
  uint32_t start, end; /* half open; {0,0} is "nowhere" */
} Span;

/* errors.def: AMPC_ERROR(E301, "title", "wrong program", "right program"), in numeric order.
 * Codes that start with W are warnings and carry a name for -Wno-NAME after the code. */
typedef enum ErrorCode {
#define AMPC_ERROR(code, ...)   code,
#define AMPC_WARNING(code, ...) code,
#include "errors.def"
  ERROR_COUNT
} ErrorCode;

typedef struct Source {
  const char *path; /* as the user wrote it */
  const char *text;
  uint32_t base, size; /* of the text within all sources */
  bool builtin;        /* the layer library inside the compiler: never shown as the place */
  const char *shown;   /* the path, for people: arena_shown */
  bool file;           /* read from `path`; else text of an option, a prompt or a program */
} Source;

/* Each prints (or, for --error-format=json, collects) one message. A note or help belongs to the
 * last error or warning. The span of a message inside a builtin source is replaced by the innermost
 * user call that led there: see diag_frame_push. Text: lower case, no full stop, both values.
 * Always false, so that what found a mistake can return what tells of it. */
bool diag_error(Compile *c, ErrorCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag_warning(Compile *c, ErrorCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool diag_note(Compile *c, Span span, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool diag_help(Compile *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A note that follows each error from here on, such as "with S = 64"; NULL: none. */
void diag_circumstance(Compile *c, Span span, const char *text);

bool diag_is_muted(const Compile *c); /* nobody sees a help now, so it need not be thought out */

/* The chain of calls that elaboration is in, so that a message can name the user's line. */
void diag_frame_push(Compile *c, Span call);
void diag_frame_pop(Compile *c);
Span diag_user_span(Compile *c, Span span); /* span itself unless it lies in a builtin source */

uint32_t diag_error_count(const Compile *c);         /* of warnings too under options.werror */
bool diag_error_within(const Compile *c, Span span); /* did an error (no warning) begin there? */
void diag_finish(Compile *c); /* after the last message: how many were not shown, open JSON */

typedef struct Place {
  const Source *source;
  uint32_t line, column; /* from 1; column counts bytes */
} Place;
Place diag_place(const Compile *c, Span span);
/* The whole line that a place stands on, without its end; "" where the source has no such line. It
 * does not end in a zero. */
const char *diag_line_text(const Compile *c, const Place *place, uint32_t *size);

/* Adds a source; its spans start at the returned base. `text` must outlive the compile. */
uint32_t diag_add_source(Compile *c, const char *path, const char *text, uint32_t size,
                         bool builtin);

/* Prints an error's title, a wrong and a right program; false if there is no such code. */
bool diag_explain(const char *code);
bool diag_is_warning(const char *name); /* is there a warning of this name, for -Wno-NAME */

/* Help for a name that is none of `names`: the nearest one, else all of them. */
bool diag_help_names(Compile *c, const char *name, const char *const *names, uint32_t n);

/* The candidate nearest to `name` in spelling, or NULL when none is near enough to suggest. */
const char *diag_nearest(const char *name, const char *const *candidates, uint32_t n);
