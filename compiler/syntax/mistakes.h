/* Messages for syntax errors: the table that the build makes from grammar/mistakes.txt. */
#pragma once
#include "ast_build.h"

enum { ANY_TOKEN = -1, ANY_STATE = -1 };

typedef struct Mistake {
  short state, token; /* of the parser, or ANY_ */
  bool skip;          /* the rest of the statement is unusable too: continue after it */
  const char *word;   /* not NULL: the token, or the one before it, must be this word */
  ErrorCode code;
  const char *text, *help; /* with $found, $before, ...; help may be NULL */
} Mistake;

extern const Mistake mistakes[]; /* the last entry has a text of NULL */

/* "an expression or `)`": what the grammar accepts here, in words. */
const char *syntax_expected(const Parser *p, const SyntaxError *e);
/* `text` with $found, $before, $chain and $unchained replaced. */
const char *syntax_fill(const Parser *p, const char *text);
