/* The statement and the call around a place, from the tokens alone: while somebody types, a text
 * often has no tree there. */
#pragma once
#include "analysis.h"

typedef struct Context {
  bool code;           /* false: in a comment or a string */
  const Token *next;   /* the first token that does not begin before the place */
  const Token *name;   /* the name or word around the place; NULL: none */
  int open;            /* the innermost open bracket; 0: none */
  const Token *callee; /* the name before it; NULL: none */
  const char *first;   /* the first word of the statement around the place; "": none */
  const char *header;  /* if the bracket is `{`: the first word of the statement before it */
  bool with;           /* the statement has a `with` before the place */
  bool argument;       /* the name is that of an argument: `lr` of `SGD(net, lr=0.1)` */
} Context;

Context context_at(const Query *q);
