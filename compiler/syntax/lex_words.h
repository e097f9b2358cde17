/* Classes of words and tokens, for lex_tokens.c and lex_brackets.c. */
#pragma once
#include "parse.h"
#include "amp.tab.h"

/* Returns the kind of raw token i. Recognizes reserved words, but top-level words are names here,
 * because they depend on the enclosing block. */
int lex_word_kind(const Parser *p, uint32_t i);
int lex_reserved_kind(const char *name); /* 0: the name is not reserved anywhere */
bool lex_is_top_word(const char *name);  /* true for import, const, dim, ... */
bool lex_starts_statement(int kind);     /* true for return, for, scan, ... */
bool lex_can_end(int kind);              /* true if a statement may end with it */
bool lex_holds_defs(const Token *first); /* true for a block that may contain defs */
/* True if raw token i is the first word of a statement or declaration with a block. */
bool lex_needs_block(const Parser *p, uint32_t i);
