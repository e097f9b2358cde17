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
  int kind; /* of amp.tab.h, a character, or RAW_... */
  Span span;
  uint32_t raw;  /* index of its raw token; for "end of line", of the raw token that ended the
                    statement */
  bool reported; /* this text already has a message: report nothing more */
  union {
    const char *name; /* names, reserved words, types */
    int64_t integer;
    double number;
    StringText string;
    Operator op;
  } as;
} Token;

/* Is `kind` one of these token kinds? */
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

/* An error found before parsing. It is reported when the parser gets to its place, so that messages
 * have the order of the text. */
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
  Problems problems;            /* sorted by location before parsing */
  uint32_t most_raw;            /* tokens that MAX_TOKENS leaves for this source */
  uint32_t raw_end;             /* amp.l: end of the text that was split so far */
  bool after_stray;             /* amp.l: the text before the next token has a message */
  uint32_t current, next_token; /* the parser's look-ahead token; the one after it */
  uint32_t jump_from, jump_to;  /* recovery: after token jump_from comes token jump_to */
  uint32_t next_problem;
  uint32_t open_braces; /* at the look-ahead token */
  bool stray_brace;     /* a `}` closes nothing: text that seems to be at the top level may be in a
                           block */
  bool too_deep;        /* an expression was too deep, which is reported once */
  Ast *out;
} Parser;

/* amp.l: fills p->raw. The last token is the end of the text, kind 0. */
void lex_raw(Parser *p);
/* lex_literals.c: called from amp.l for a single lexeme. */
void lex_number(Parser *p, Token *t, const char *text);
void lex_string(Parser *p, Token *t, const char *text, size_t size);
void lex_stray(Parser *p, Span span, const char *text, size_t size);
void lex_check_utf8(Parser *p);
bool lex_is_text(Parser *p); /* returns false, after a message, if the text contains a NUL byte */
/* lex_tokens.c: raw tokens -> tokens: statement ends and reserved words. */
void lex_tokens(Parser *p);
/* lex_brackets.c: where an unclosed bracket must have ended. */
typedef struct Break { /* insert `close` before raw token `raw`; 0: leave out the raw token */
  uint32_t raw;
  int close;
  uint32_t open; /* the raw token of the bracket that it closes */
} Break;
typedef VEC(Break) Breaks;
Breaks lex_brackets(Parser *p);

void parse_problem(Parser *p, ErrorCode code, Span span, const char *text, const char *help);
/* A token as messages name it: its text in backquotes, or "the end of the line". */
const char *parse_found(const Parser *p, const Token *t);
