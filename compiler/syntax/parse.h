/* Inside of the front end: text -> raw tokens (grammar/amp.l) -> tokens (lex_tokens.c,
 * lex_brackets.c) -> tree (grammar/amp.y, ast_build.c).
 *
 * The whole text is cut into tokens before the parser runs. So a statement end, a reserved word or
 * an unclosed bracket is decided with all of the text in view, and a message can look around. */
#pragma once
#include "compiler/base/limits.h"
#include "compiler/base/compile.h"
#include "ast.h"

typedef struct Token {
  int kind; /* of amp.tab.h, a character, or RAW_... */
  Span span;
  uint32_t raw;  /* index of the raw token it was made from; for "end of line" what ended it */
  bool reported; /* a message has been given about this range of text: stay silent */
  union {
    const char *name; /* names, reserved words, types */
    int64_t integer;
    double number;
    StringText string;
    Operator op;
  } as;
} Token;

/* Is it one of these kinds of tokens? */
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

/* A mistake found before parsing, told when the parser gets there, so that messages come in the
 * order of the text. */
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
  Tokens raw, tokens;
  Problems problems;            /* sorted by place before parsing */
  uint32_t most_raw;            /* tokens that the limit leaves to this source */
  uint32_t raw_end;             /* amp.l: how far the text has been cut */
  bool after_stray;             /* amp.l: a message was given about what is before the next token */
  uint32_t current, next_token; /* the token that the parser looks at; the one it gets next */
  uint32_t jump_from, jump_to;  /* recovery: behind the first of these tokens comes the second */
  uint32_t next_problem;
  uint32_t open_braces; /* at the token that the parser looks at */
  bool stray_brace;     /* there is one: what seems to stand at the top level may be in a block */
  bool too_deep;        /* an expression was, and that has been told */
  Ast *out;
} Parser;

/* amp.l: fills p->raw; the last one is the end of the text, kind 0. */
void lex_raw(Parser *p);
/* lex_literals.c: called from amp.l for one piece of text. */
void lex_number(Parser *p, Token *t, const char *text);
void lex_string(Parser *p, Token *t, const char *text, size_t size);
void lex_stray(Parser *p, Span span, const char *text, size_t size);
void lex_check_utf8(Parser *p);
bool lex_is_text(Parser *p); /* false, after a message, for what has a zero byte in it */
/* lex_tokens.c: raw tokens -> tokens: statement ends and reserved words. */
void lex_tokens(Parser *p);
/* lex_brackets.c: where a bracket that nobody closed must have ended. */
typedef struct Break { /* insert `close` before raw token `raw`; 0: leave the raw token out */
  uint32_t raw;
  int close;
  uint32_t open; /* the raw token that it closes */
} Break;
typedef VEC(Break) Breaks;
Breaks lex_brackets(Parser *p);

void parse_problem(Parser *p, ErrorCode code, Span span, const char *text, const char *help);
/* How a message names a token: its text in backquotes, or "the end of the line". */
const char *parse_found(const Parser *p, const Token *t);
