/* Reports syntax errors, and chooses where the parser continues.
 *
 * A frequent mistake has its own message in grammar/mistakes.txt. That file has pairs of a wrong
 * snippet and a message, from which the build makes a table with the key (parser state, token). Any
 * other message lists what the grammar accepts. */
#include "mistakes.h"
#include "amp.tab.h"
#include "foreign.h"
#include "lex_words.h"
#include <string.h>

/* Returns the token that the parser could not accept. */
static const Token *stuck_at(const Parser *p)
{
  return &p->tokens.at[p->current];
}

static bool is_word(const Token *t, const char *word)
{
  return (t->kind == TOK_NAME || t->kind == TOK_DTYPE) && strcmp(t->as.name, word) == 0;
}

/* Returns the most specific matching entry, or NULL: a word counts more than a state, and a state
 * more than a token. */
static const Mistake *find_mistake(const Parser *p, const SyntaxError *e)
{
  const Token *t = stuck_at(p), *before = p->current ? t - 1 : t;
  const Mistake *best = NULL;
  int best_rank = 0;
  for (const Mistake *m = mistakes; m->text; m++) {
    if ((m->state != ANY_STATE && m->state != e->state) ||
        (m->token != ANY_TOKEN && m->token != e->token))
      continue;
    if (m->word && !is_word(t, m->word) && !is_word(before, m->word)) continue;
    int rank = 1 + (m->token != ANY_TOKEN) + 2 * (m->state != ANY_STATE) + 4 * (m->word != NULL);
    if (rank > best_rank) best = m, best_rank = rank;
  }
  return best;
}

static uint32_t line_of(const Parser *p, const Token *t)
{
  return diag_place(p->c, t->span).line;
}

/* Returns the open bracket around token i; NULL outside of ( ) and [ ]. */
static const Token *round_bracket(const Parser *p, uint32_t i)
{
  for (uint32_t depth = 0; i-- > 0;) {
    int kind = p->tokens.at[i].kind;
    if (kind == ')' || kind == ']')
      depth++;
    else if ((kind == '(' || kind == '[') && depth-- == 0)
      return &p->tokens.at[i];
    else if (kind == TOK_NL || kind == '{' || kind == '}')
      return NULL;
  }
  return NULL;
}

/* Adds a note if the error depends on an earlier line. */
static void note_context(Parser *p)
{
  const Token *t = stuck_at(p);
  if (!p->current || t->kind == TOK_NL || t->kind == 0) return;
  const Token *before = t - 1, *open = round_bracket(p, p->current);
  if (open) {
    if (line_of(p, open) < line_of(p, t)) diag_note(p->c, open->span, "inside of this bracket");
    return;
  }
  for (; before > p->tokens.at && before->kind != TOK_NL; before--) {
    if (line_of(p, before) == line_of(p, before + 1) || lex_can_end(before->kind)) continue;
    if (before->kind == '{') return;
    diag_note(p->c, before->span, "a line that ends with %s continues in the next",
              parse_found(p, before));
    return;
  }
}

/* ---- recovery ---- */

/* Lets the parser continue at the end of the statement that contains token i, braces included. If
 * the error is at a `{`, which the parser takes as the start of a block, the parser gets the `}` of
 * that block first. */
static void skip_statement(Parser *p, uint32_t i)
{
  uint32_t close = 0;
  for (uint32_t depth = 0; p->tokens.at[i].kind; i++) {
    int kind = p->tokens.at[i].kind;
    if (kind == '{') depth++;
    if (kind == '}') depth -= depth > 0;
    if (kind == '}' && depth == 0 && !close) close = i;
    if (kind == TOK_NL && depth == 0) break;
  }
  p->next_token = i;
  if (stuck_at(p)->kind == '{' && close) {
    p->next_token = p->jump_from = close;
    p->jump_to = i;
  }
}

static uint32_t column_of(const Parser *p, const Token *t)
{
  return diag_place(p->c, t->span).column;
}

/* Returns the index of the first token of the statement with the error. */
static uint32_t statement_start(const Parser *p)
{
  uint32_t i = p->current;
  while (i && p->tokens.at[i - 1].kind != TOK_NL && p->tokens.at[i - 1].kind != '{' &&
         p->tokens.at[i - 1].kind != '}')
    i--;
  return i;
}

/* After a block with a colon: skips its lines, which are indented more than the line of the
 * colon. */
static void skip_indented(Parser *p)
{
  uint32_t i = statement_start(p);
  uint32_t line = line_of(p, stuck_at(p)), indent = column_of(p, &p->tokens.at[i]);
  for (i = p->current; p->tokens.at[i].kind; i++) {
    skip_statement(p, i);
    i = p->next_token;
    const Token *next = &p->tokens.at[i + 1];
    if (!p->tokens.at[i].kind || next->kind == 0 || next->kind == '}') return;
    if (line_of(p, next) > line && column_of(p, next) <= indent) return;
  }
}

/* True if the error follows from a surplus `}`: the rest of the block seems to be at the top
 * level. */
static bool is_aftermath(const Parser *p)
{
  return p->stray_brace && !p->open_braces && column_of(p, &p->tokens.at[statement_start(p)]) > 1;
}

/* Reports `modle net = ..`: two words, of which the first one is nearly a word for statements. */
static bool misspelt_word(Parser *p, Stuck s)
{
  const Token *t = &p->tokens.at[s.from];
  NameVec words = {0};
  bool top;
  if (s.at != s.from + 1 || t->kind != TOK_NAME ||
      !ONE_OF(t[1].kind, TOK_NAME, TOK_DTYPE, TOK_STRING, TOK_INT, '{'))
    return false;
  for (uint32_t i = 0; ast_reserved_word(i, &top); i++) {
    const char *word = ast_reserved_word(i, &top);
    if (top ? p->open_braces == (t[1].kind == '{') : lex_starts_statement(lex_reserved_kind(word)))
      vec_push(p->c->arena, &words, word);
  }
  const char *near = diag_nearest(t->as.name, words.at, words.n);
  if (!near) return false;
  diag_error(p->c, E100, t->span, "no statement begins with `%s`", t->as.name);
  return diag_help(p->c, "did you mean `%s`?", near), true;
}

/* Returns the statement with the error, up to its block. A colon at the end of a line begins one.
 */
static Stuck stuck_statement(const Parser *p)
{
  Stuck s = {statement_start(p), p->current, p->current};
  for (const Token *t; (t = &p->tokens.at[s.to])->kind; s.to++) {
    if (t->kind == TOK_NL || t->kind == '{') break;
    if (s.to > s.from && t[-1].kind == ':' && line_of(p, t) > line_of(p, t - 1)) break;
  }
  return s;
}

/* Continues behind a statement of another language. If it ends with a colon, its block is skipped,
 * too. */
static void skip_foreign(Parser *p, Stuck s)
{
  if (s.to > s.from && p->tokens.at[s.to - 1].kind == ':')
    skip_indented(p);
  else if (stuck_at(p)->kind != TOK_NL) /* else the parser has the statement's end already */
    skip_statement(p, p->current);
}

/* The parser calls this at a syntax error. Brackets are already corrected, so the remaining errors
 * are local: report one message, then continue with the next statement. */
void parse_syntax_error(Parser *p, const SyntaxError *e)
{
  const Token *t = stuck_at(p);
  const Mistake *m = find_mistake(p, e);
  Stuck statement = stuck_statement(p);
  if (!t->reported && !is_aftermath(p) && foreign_statement(p, statement)) {
    skip_foreign(p, statement);
    return;
  }
  if (!t->reported && !is_aftermath(p) && misspelt_word(p, statement)) {
    skip_statement(p, p->current);
    return;
  }
  if (!t->reported && !is_aftermath(p)) {
    if (m) {
      diag_error(p->c, m->code, t->span, "%s", syntax_fill(p, m->text));
      note_context(p);
      if (m->help) diag_help(p->c, "%s", syntax_fill(p, m->help));
    } else {
      diag_error(p->c, E100, t->span, "%s", syntax_expected(p, e));
      note_context(p);
    }
  }
  if (m && m->skip)
    skip_statement(p, p->current);
  else if (t->kind == ':' && m && m->code == E102)
    skip_indented(p);
}
