/* Internals of the front end: text -> raw tokens (grammar/amp.l) -> tokens (lex_tokens.c,
 * lex_brackets.c) -> tree (grammar/amp.y, ast_build.c).
 *
 * The whole text is split into tokens before the parser runs. So statement ends, reserved words and
 * unclosed brackets are decided with the whole text known, and a message can use the tokens around
 * it. */
#pragma once
#include "compiler/base/limits.h"
#include "compiler/base/compile.h"
#include "ast.h"

typedef struct Token {
  int kind; /* a kind of amp.tab.h, a character, or RAW_... */
  Span span;
  /* index of its raw token; for TOK_NL, of the raw token that ended the statement */
  uint32_t raw;
  bool reported; /* this text already has a message, so report no other one */
  union {
    const char *name; /* names, reserved words, types */
    int64_t integer;
    double number;
    StringText string;
    Operator op;
  } as;
} Token;

/* True if `kind` is one of the n token kinds. */
bool kind_among(int kind, const int *kinds, size_t n);
#define ONE_OF(kind, ...)                                                                          \
  kind_among(kind, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
static inline bool kind_opens(int kind)
{
  return kind == '(' || kind == '[' || kind == '{';
}
static inline bool kind_closes(int kind)
{
  return kind == ')' || kind == ']' || kind == '}';
}

enum { RAW_NEWLINE = '\n', RAW_SEMICOLON = ';' };

typedef VEC(Token) Tokens;

/* An error found before parsing. It is reported when the parser reaches its location, so that
 * messages have the order of the text. */
typedef struct Problem {
  ErrorCode code;
  Span span;
  const char *text, *help; /* help may be NULL */
  Span note_span;
  const char *note; /* may be NULL */
} Problem;

typedef VEC(Problem) Problems;

typedef struct Parser {
  Compile *c;
  const Source *source;
  Span text; /* the part of the source that is parsed */
  Tokens raw, tokens;
  Problems problems; /* sorted by location before parsing */
  uint32_t most_raw; /* tokens that MAX_TOKENS leaves for this source */
  uint32_t raw_end;  /* amp.l: end of the text that has been split */
  bool after_stray;  /* amp.l: the text before the next token has a message */
  /* current: the parser's look-ahead token; next_token: the one after it */
  uint32_t current, next_token;
  uint32_t jump_from, jump_to; /* recovery: token jump_to follows token jump_from */
  uint32_t next_problem;
  uint32_t open_braces; /* number of open braces at the look-ahead token */
  /* a `}` closes no block, so text that seems to be at the top level may be in a block */
  bool stray_brace;
  bool too_deep; /* an expression was too deep; that is reported once */
  Ast *out;
} Parser;

/* amp.l: fills p->raw. The last token has kind 0: the end of the text. */
void lex_raw(Parser *p);
/* The same for a whole source, without messages. */
Tokens lex_source(Compile *c, const Source *source);
/* lex_literals.c: amp.l calls these for a single lexeme. */
void lex_number(Parser *p, Token *t, const char *text);
void lex_string(Parser *p, Token *t, const char *text, size_t size);
void lex_stray(Parser *p, Span span, const char *text, size_t size);
void lex_check_utf8(Parser *p);
bool lex_is_text(Parser *p); /* false, after a message, if the text contains a NUL byte */
/* lex_tokens.c: raw tokens -> tokens: statement ends and reserved words. */
void lex_tokens(Parser *p);
/* lex_brackets.c: returns where unclosed brackets must have ended. */
typedef struct Break { /* insert token `close` before raw token `raw`; close 0: leave out `raw` */
  uint32_t raw;
  int close;
  uint32_t open; /* index of the raw token of the bracket that `close` closes */
} Break;
typedef VEC(Break) Breaks;
Breaks lex_brackets(Parser *p);

void parse_problem(Parser *p, ErrorCode code, Span span, const char *text, const char *help);
/* Returns a token as messages name it: its text in backquotes, or "the end of the line". */
const char *parse_found(const Parser *p, const Token *t);
