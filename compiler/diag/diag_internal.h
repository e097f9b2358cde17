/* What diag.c shares with the two message formats. */
#pragma once
#include "compiler/base/compile.h"
#include "diag.h"

typedef enum Severity { SEVERITY_error, SEVERITY_warning, SEVERITY_note, SEVERITY_help } Severity;

typedef struct Message {
  Severity severity;
  const char *code; /* "E301"; NULL for notes and helps */
  Span span;        /* {0,0}: no location */
  const char *text;
} Message;

typedef struct Lines { /* of one source: the offset of each line */
  VEC(uint32_t) start;
} Lines;

typedef struct Seen { /* a loop that is unrolled repeats its messages in each round */
  ErrorCode code;
  Span span;
} Seen;

typedef struct Wound { /* a line with a syntax error, or one that a note about it points at */
  const char *text;
  uint32_t size; /* of the head of the line, which contains the name that it defines */
} Wound;

struct DiagState {
  uint32_t errors, warnings; /* counted, whether printed or not */
  uint32_t hidden;           /* errors beyond the limit */
  bool muted;                /* the last message was not printed, so its notes are not either */
  VEC(Lines) lines;          /* one per source */
  VEC(Span) frames;
  VEC(Seen) seen;
  VEC(Wound) wounds;
  Span circumstance_span;
  const char *circumstance; /* diag_circumstance() */
  bool wounding;            /* the last message was a syntax error: lines in its notes are wounds
                               too */
  Text json;                /* the object that still collects notes; empty if none is open */
  bool json_notes;
};

typedef struct ErrorInfo {
  const char *code, *name; /* name: of a warning, else NULL */
  const char *title, *wrong, *right;
} ErrorInfo;
extern const ErrorInfo error_info[ERROR_COUNT];

/* diag_aftermath.c: remembers the line of a syntax error; decides if an error only follows from
 * one. */
void diag_wound(Compile *c, Span span);
bool diag_is_aftermath(const Compile *c, ErrorCode code, Span span);

void diag_print_text(Compile *c, const Message *m);
void diag_print_json(Compile *c, const Message *m);
void diag_finish_json(Compile *c);
