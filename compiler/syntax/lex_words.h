/* Classes of words and tokens, for lex_tokens.c and lex_brackets.c. */
#pragma once
#include "parse.h"
#include "amp.tab.h"

/* The kind of raw token i. Recognizes reserved words, except top-level words, which are names here:
 * those depend on the enclosing block. */
int lex_word_kind(const Parser *p, uint32_t i);
bool lex_is_top_word(const char *name);  /* import, const, dim, module, ... */
bool lex_starts_statement(int kind);     /* return, for, scan, ...: the first word of a statement */
bool lex_can_end(int kind);              /* may a statement end with it? */
bool lex_holds_defs(const Token *first); /* does it open a block that may contain defs? */
/* Is raw token i the first word of a statement or declaration with a block? */
bool lex_needs_block(const Parser *p, uint32_t i);
