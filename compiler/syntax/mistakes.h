/* What to say when the parser is stuck: the table made from grammar/mistakes.txt. */
#pragma once
#include "ast_build.h"

enum { ANY_TOKEN = -1, ANY_STATE = -1 };

typedef struct Mistake {
  short state, token; /* of the parser, or ANY_ */
  bool skip;          /* what follows means nothing either: go on behind the whole statement */
  const char *word;   /* when not NULL: the token, or the one before it, is this word */
  ErrorCode code;
  const char *text, *help; /* with $found, $before, ...; help may be NULL */
} Mistake;

extern const Mistake mistakes[]; /* ends with a text of NULL */

/* "an expression or `)`": what the grammar takes, in words. */
const char *syntax_expected(const Parser *p, const SyntaxError *e);
/* `text` with $found, $before, $chain and $unchained replaced. */
const char *syntax_fill(const Parser *p, const char *text);
