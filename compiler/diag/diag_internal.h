/* What diag.c shares with the two ways of printing a message. */
#pragma once
#include "compiler/base/compile.h"
#include "diag.h"

typedef enum Severity { SEVERITY_error, SEVERITY_warning, SEVERITY_note, SEVERITY_help } Severity;

typedef struct Message {
  Severity severity;
  const char *code; /* "E301"; NULL for notes and helps */
  Span span;        /* {0,0}: no place */
  const char *text;
} Message;

typedef struct Lines { /* of one source: where each line starts */
  VEC(uint32_t) start;
} Lines;

typedef struct Seen { /* a loop that is unrolled says the same thing once per round */
  ErrorCode code;
  Span span;
} Seen;

typedef struct Wound { /* a line that could not be read, or that such a message points at */
  const char *text;
  uint32_t size; /* of its head: what it defines stands there */
} Wound;

struct DiagState {
  uint32_t errors, warnings; /* counted, whether printed or not */
  uint32_t hidden;           /* of the errors, those beyond the limit */
  bool muted;                /* the last message was not printed, so its notes are not either */
  VEC(Lines) lines;          /* one per source */
  VEC(Span) frames;
  VEC(Seen) seen;
  VEC(Wound) wounds;
  Span circumstance_span;
  const char *circumstance; /* diag_circumstance() */
  bool wounding;            /* the last message was about syntax: its notes show wounds too */
  Text json;                /* the object that notes are still added to; empty when none is open */
  bool json_notes;
};

typedef struct ErrorInfo {
  const char *code, *name; /* name: of a warning, else NULL */
  const char *title, *wrong, *right;
} ErrorInfo;
extern const ErrorInfo error_info[ERROR_COUNT];

/* diag_aftermath.c: notes the line of a syntax error; does an error only follow from one? */
void diag_wound(Compile *c, Span span);
bool diag_is_aftermath(const Compile *c, ErrorCode code, Span span);

void diag_print_text(Compile *c, const Message *m);
void diag_print_json(Compile *c, const Message *m);
void diag_finish_json(Compile *c);
