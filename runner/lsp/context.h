/* The brackets and the statement around a place, from the text alone: while somebody types, a text
 * often has no tree there. */
#pragma once
#include "analysis.h"

typedef struct Context {
  bool code;          /* false: in a comment or a string */
  char open;          /* the innermost open bracket; 0: none */
  uint32_t open_at;   /* its offset in the text */
  uint32_t statement; /* offset of the first character of the statement around the place */
  uint32_t header;    /* if the bracket is `{`: offset of the statement that it belongs to */
} Context;

Context context_at(const Query *q);
/* Returns the name of the function whose arguments are around the place; "": there is none. */
const char *context_callee(const Query *q, const Context *at);
/* Returns the name at an offset in the text; "" if none begins there. */
const char *context_word(const Query *q, uint32_t at);
