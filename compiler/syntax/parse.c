/* From a source to its tree: splits it into tokens and runs the parser over them. Problems that
 * were found before parsing are reported when the parser reaches their location, so that messages
 * have the order of the text. */
#include "ast_build.h"
#include "amp.tab.h"
#include <stdlib.h>
#include <string.h>

/* Adds an error that was found before parsing. */
void parse_problem(Parser *p, ErrorCode code, Span span, const char *text, const char *help)
{
  vec_push(p->c->arena, &p->problems,
           (Problem){.code = code, .span = span, .text = text, .help = help});
}

static int by_place(const void *a, const void *b)
{
  const Problem *x = a, *y = b;
  if (x->span.start != y->span.start) return x->span.start < y->span.start ? -1 : 1;
  return strcmp(x->text, y->text);
}

/* Reports the problems that start at or before offset `until`. */
static void tell_problems(Parser *p, uint32_t until)
{
  for (; p->next_problem < p->problems.n; p->next_problem++) {
    const Problem *problem = &p->problems.at[p->next_problem];
    if (problem->span.start > until) break;
    diag_error(p->c, problem->code, problem->span, "%s", problem->text);
    if (problem->note) diag_note(p->c, problem->note_span, "%s", problem->note);
    if (problem->help) diag_help(p->c, "%s", problem->help);
  }
}

/* The parser calls this for its next token. A jump skips text that cannot be parsed after an
 * error. */
const Token *parse_next(Parser *p)
{
  const Token *t = &p->tokens.at[p->next_token];
  p->current = p->next_token;
  if (p->jump_to && p->current == p->jump_from)
    p->next_token = p->jump_to;
  else if (p->next_token + 1 < p->tokens.n)
    p->next_token++; /* the last token is the end */
  if (t->kind == '{') p->open_braces++;
  if (t->kind == '}' && p->open_braces) p->open_braces--;
  tell_problems(p, t->span.start);
  return t;
}

/* The token as messages quote it. */
const char *parse_found(const Parser *p, const Token *t)
{
  if (t->kind == TOK_NL) t = &p->raw.at[t->raw];
  if (t->kind == 0) return "the end of the file";
  if (t->kind == RAW_NEWLINE) return "the end of the line";
  const char *text = p->source->text + (t->span.start - p->source->base);
  int n = (int)(t->span.end - t->span.start), shown = 0;
  while (shown < n && shown < 40 && text[shown] != '\n') shown++;
  if (t->kind == TOK_STRING && shown < n) return "this string";
  return arena_printf(p->c->arena, "`%.*s`%s", shown, text, shown < n ? "..." : "");
}

void parse_too_deep(Parser *p, Span span)
{
  diag_error(p->c, E100, span, "the program is nested too deeply here");
}

static const Source *find_source(const Compile *c, uint32_t base)
{
  for (uint32_t i = c->sources.n; i-- > 0;) /* it is a late one */
    if (c->sources.at[i].base == base) return &c->sources.at[i];
  return NULL;
}

/* Runs the stages between the text and the parser: raw tokens, brackets, tokens. */
static bool split(Parser *p)
{
  lex_raw(p);
  if (p->raw.n - 1 > p->most_raw) { /* the token of the end does not count */
    return diag_error(p->c, E100, p->raw.at[p->raw.n - 1].span,
                      "the files of the job have more than %d tokens", MAX_TOKENS);
  }
  if (!p->source->builtin) p->c->tokens += p->raw.n - 1;
  lex_tokens(p);
  if (p->problems.n) qsort(p->problems.at, p->problems.n, sizeof(Problem), by_place);
  return true;
}

/* Runs the stages before the parser, for a whole source. First it checks the encoding. */
bool parse_start(Parser *p, Compile *c, uint32_t base, Ast *out)
{
  *p = (Parser){.c = c, .source = find_source(c, base), .out = out};
  p->text = (Span){base, base + p->source->size};
  if (p->source->size > MAX_SOURCE)
    return diag_error(c, E100, (Span){base, base}, "the file has %u bytes; at most %d can be read",
                      p->source->size, MAX_SOURCE);
  p->most_raw = p->source->builtin ? UINT32_MAX : MAX_TOKENS - c->tokens;
  if (!lex_is_text(p)) return false;
  lex_check_utf8(p);
  return split(p);
}

/* Runs bison's parser. Problems after the parser's last token are reported at the end. */
void parse_run(Parser *p)
{
  amp_parse(p);
  tell_problems(p, UINT32_MAX);
}

bool ast_parse(Compile *c, uint32_t base, Ast *out)
{
  uint32_t errors = diag_error_count(c);
  Parser p;
  if (!parse_start(&p, c, base, out)) return false;
  parse_run(&p);
  return diag_error_count(c) == errors;
}

bool ast_parse_part(Compile *c, Span part, Ast *out)
{
  uint32_t errors = diag_error_count(c);
  Parser p = {.c = c,
              .source = diag_place(c, part).source,
              .text = part,
              .most_raw = UINT32_MAX,
              .out = out};
  split(&p);
  parse_run(&p);
  return diag_error_count(c) == errors;
}
