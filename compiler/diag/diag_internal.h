/* Declarations that diag.c and the two message formats share. */
#pragma once
#include "compiler/base/compile.h"
#include "diag.h"

/* The offset of each line of a source. */
typedef struct Lines {
  VEC(uint32_t) start;
} Lines;

/* A message that was printed: an unrolled loop would repeat it in each iteration. */
typedef struct Seen {
  ErrorCode code;
  Span span;
} Seen;

/* A line with a syntax error, or a line that a note about that error points at. */
typedef struct Wound {
  const char *text;
  uint32_t size; /* bytes of the head of the line, which contains the name that the line defines */
} Wound;

struct DiagState {
  uint32_t errors, warnings; /* including messages that were not printed */
  uint32_t hidden;           /* errors beyond the limit */
  bool muted;                /* the last message was not printed, so its notes are not printed */
  VEC(Lines) lines;          /* one per source */
  VEC(Span) frames;
  VEC(Seen) seen;
  VEC(Wound) wounds;
  Span circumstance_span;
  const char *circumstance; /* diag_circumstance() */
  /* The last message was a syntax error, so lines in its notes are also wounds. */
  bool wounding;
  VEC(Message) kept; /* with options.keep_messages */
  Text json;         /* the open object, which still collects notes; empty if none is open */
  bool json_notes;
};

typedef struct ErrorInfo {
  const char *code, *name; /* name: the name of a warning; NULL for an error */
  const char *title, *wrong, *right;
} ErrorInfo;
extern const ErrorInfo error_info[ERROR_COUNT];

/* diag_aftermath.c. diag_wound: remembers the line of a syntax error. diag_is_aftermath: true if an
 * error only follows from a syntax error. */
void diag_wound(Compile *c, Span span);
bool diag_is_aftermath(const Compile *c, ErrorCode code, Span span);

void diag_print_text(Compile *c, const Message *m);
void diag_print_json(Compile *c, const Message *m);
void diag_finish_json(Compile *c);
