/* Parses text of `amp repl`: finds if it is complete, and if it is a declaration or statements. The
 * grammar is that of files: statements are parsed as the body of an infer block, whose other tokens
 * are added here and have no text. */
#include "ast_build.h"
#include "amp.tab.h"
#include "source.h"
#include <string.h>

Tokens lex_source(Compile *c, const Source *source)
{
  Parser p = {.c = c,
              .source = source,
              .text = {source->base, source->base + source->size},
              .most_raw = MAX_TOKENS};
  lex_raw(&p);
  return p.raw;
}

/* True if more brackets are opened than closed; `amp repl` then reads another line. */
bool ast_is_open(const char *text, uint32_t size)
{
  Options options = {.error_limit = 1};
  Compile *c = compile_create(&options);
  int64_t open = 0;
  if (size <= MAX_SOURCE) {
    diag_add_source(c, "", text, size, false);
    /* no further step: the next one would close open brackets */
    const Tokens raw = lex_source(c, &c->sources.at[0]);
    for (uint32_t i = 0; i < raw.n; i++)
      open += kind_opens(raw.at[i].kind) - kind_closes(raw.at[i].kind);
  }
  compile_destroy(c);
  return open > 0;
}

/* ---- statements as a body ---- */

/* True if the first word begins a declaration. Text with another first word is a statement. */
static bool starts_declaration(const Parser *p)
{
  return ONE_OF(p->tokens.at[0].kind, TOK_IMPORT, TOK_CONST, TOK_DIM, TOK_DEF, TOK_MODULE, TOK_OP,
                TOK_DATA, TOK_MODEL, TOK_OPTIMIZER, TOK_PRECISION, TOK_TRAIN, TOK_EVAL, TOK_INFER);
}

/* Adds a token that is not in the text, with an empty span. */
static void push(Parser *p, Tokens *out, int kind, uint32_t at, uint32_t raw)
{
  Token t = {.kind = kind, .span = {at, at}, .raw = raw};
  if (kind == TOK_NAME) t.as.name = "answer";
  vec_push(p->c->arena, out, t);
}

/* Wraps the tokens: `1 + 1` becomes `infer answer() { 1 + 1 }`. */
static void wrap(Parser *p)
{
  static const int before[] = {TOK_INFER, TOK_NAME, '(', ')', '{'};
  const Token *end = &p->tokens.at[p->tokens.n - 1];
  Tokens out = {0};
  for (size_t i = 0; i < sizeof before / sizeof *before; i++)
    push(p, &out, before[i], p->source->base, 0);
  for (uint32_t i = 0; i + 1 < p->tokens.n; i++) {
    vec_push(p->c->arena, &out, p->tokens.at[i]);
    if (p->tokens.at[i].kind == TOK_SETS) out.at[out.n - 1].kind = '='; /* no top level any more */
  }
  push(p, &out, '}', end->span.start, end->raw);
  push(p, &out, TOK_NL, end->span.start, end->raw);
  vec_push(p->c->arena, &out, *end);
  p->tokens = out;
}

/* Changes the kind to DECL_body and makes the last expression its value. */
static void finish_body(Parser *p, Decl *d)
{
  Block *body = &d->as.function.body;
  d->kind = DECL_body;
  Stmt *last = body->n ? body->at[body->n - 1] : NULL;
  if (!last || last->kind != STMT_expr) return;
  Expr **value = arena_new(p->c->arena, Expr *);
  *value = last->as.value;
  last->kind = STMT_return;
  last->as.exprs = (ExprList){value, 1};
}

bool ast_parse_input(Compile *c, uint32_t base, Ast *out)
{
  uint32_t errors = diag_error_count(c);
  Parser p;
  if (!parse_start(&p, c, base, out)) return false;
  const Token *first = &p.tokens.at[0];
  /* the only call that files make at the top level */
  bool seed = first->kind == TOK_NAME && strcmp(first->as.name, "manual_seed") == 0;
  bool body = first->kind && !seed && !starts_declaration(&p);
  if (body) wrap(&p);
  parse_run(&p);
  if (body && out->n == 1 && out->at[0]->kind == DECL_infer) finish_body(&p, out->at[0]);
  return diag_error_count(c) == errors;
}
