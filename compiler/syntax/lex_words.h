/* What words and tokens are: shared by lex_tokens.c and lex_brackets.c. */
#pragma once
#include "parse.h"
#include "amp.tab.h"

/* Kind of raw token i, reserved words told from names as far as that needs no knowledge of blocks:
 * top-level words are names here. */
int lex_word_kind(const Parser *p, uint32_t i);
bool lex_is_top_word(const char *name);  /* import, const, dim, module, ... */
bool lex_starts_statement(int kind);     /* return, for, scan, ...: first word of one */
bool lex_can_end(int kind);              /* may a statement end with it? */
bool lex_holds_defs(const Token *first); /* does this word open a block that may hold defs? */
/* Is raw token i the first word of a statement or declaration that has a block? */
bool lex_needs_block(const Parser *p, uint32_t i);
