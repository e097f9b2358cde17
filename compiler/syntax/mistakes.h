/* Messages for syntax errors: the table that the build makes from grammar/mistakes.txt. */
#pragma once
#include "ast_build.h"

enum { ANY_TOKEN = -1, ANY_STATE = -1 };

typedef struct Mistake {
  short state, token; /* state and token of the parser, or ANY_STATE, ANY_TOKEN */
  bool skip;          /* continue after the statement, because its rest is unusable */
  const char *word;   /* the token or the one before it must be this word; NULL: any */
  ErrorCode code;
  const char *text, *help; /* contain $found, $before, ...; help may be NULL */
} Mistake;

extern const Mistake mistakes[]; /* the last entry has a text of NULL */

/* Returns what the grammar accepts at the error, in words: "an expression or `)`". */
const char *syntax_expected(const Parser *p, const SyntaxError *e);
/* Returns `text` with $found, $before, $chain and $unchained replaced. */
const char *syntax_fill(const Parser *p, const char *text);
/* Returns the text of tokens from..to-1; "..." if it is long or has several lines. */
const char *syntax_text(const Parser *p, uint32_t from, uint32_t to);
