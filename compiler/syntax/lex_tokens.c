/* Raw tokens -> tokens: decides which newlines end a statement, and which words are reserved. */
#include "parse.h"
#include "compiler/base/names.h"
#include "lex_words.h"
#include "common/number.h"
#include "runtime/plan/types.h"
#include <string.h>

/* always: reserved everywhere except as a member or keyword argument. type: names a type
 * everywhere. top: reserved only where a declaration may begin, so `model` and `data` can be names
 * of variables. */
typedef enum WordUse { WORD_always, WORD_type, WORD_top } WordUse;

#define TYPE_WORD(KIND, name, ...) {#name, TOK_DTYPE, WORD_type},
static const struct Word {
  const char *text;
  int kind;
  WordUse use;
} words[] = {
    {"def", TOK_DEF, WORD_always},
    {"return", TOK_RETURN, WORD_always},
    {"if", TOK_IF, WORD_always},
    {"else", TOK_ELSE, WORD_always},
    {"for", TOK_FOR, WORD_always},
    {"in", TOK_IN, WORD_always},
    {"scan", TOK_SCAN, WORD_always},
    {"carry", TOK_CARRY, WORD_always},
    {"emit", TOK_EMIT, WORD_always},
    {"autocast", TOK_AUTOCAST, WORD_always},
    {"no_grad", TOK_NO_GRAD, WORD_always},
    {"minimize", TOK_MINIMIZE, WORD_always},
    {"with", TOK_WITH, WORD_always},
    {"metric", TOK_METRIC, WORD_always},
    {"every", TOK_EVERY, WORD_always},
    {"assert", TOK_ASSERT, WORD_always},
    {"and", TOK_AND, WORD_always},
    {"or", TOK_OR, WORD_always},
    {"not", TOK_NOT, WORD_always},
    {"true", TOK_TRUE, WORD_always},
    {"True", TOK_TRUE, WORD_always},
    {"false", TOK_FALSE, WORD_always},
    {"False", TOK_FALSE, WORD_always},
    {"none", TOK_NONE, WORD_always},
    {"None", TOK_NONE, WORD_always},
    AMPC_FLOATS(TYPE_WORD){"i32", TOK_DTYPE, WORD_type},
    {"i64", TOK_DTYPE, WORD_type},
    {"u8", TOK_DTYPE, WORD_type},
    {"bool", TOK_DTYPE, WORD_type},
    {"float", TOK_DTYPE, WORD_type},
    {"int", TOK_DTYPE, WORD_type},
    {"str", TOK_DTYPE, WORD_type},
    {"list", TOK_DTYPE, WORD_type},
    {"import", TOK_IMPORT, WORD_top},
    {"const", TOK_CONST, WORD_top},
    {"dim", TOK_DIM, WORD_top},
    {"module", TOK_MODULE, WORD_top},
    {"op", TOK_OP, WORD_top},
    {"data", TOK_DATA, WORD_top},
    {"model", TOK_MODEL, WORD_top},
    {"optimizer", TOK_OPTIMIZER, WORD_top},
    {"precision", TOK_PRECISION, WORD_top},
    {"train", TOK_TRAIN, WORD_top},
    {"eval", TOK_EVAL, WORD_top},
    {"infer", TOK_INFER, WORD_top},
};

bool kind_among(int kind, const int *kinds, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (kinds[i] == kind) return true;
  return false;
}

static const struct Word *find_word(const char *text)
{
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (same_name(words[i].text, text)) return &words[i];
  return NULL;
}

/* Returns true after `.` and before a single `=`, where reserved words are names. No statement has
 * `,`, `:`, `)` or `]` after `metric` or `every`, so there they are names: `f(every, metric: str)`.
 */
static bool in_place_of_name(const Parser *p, uint32_t i, int word)
{
  uint32_t before = i, after = i + 1;
  while (before > 0 && p->raw.at[before - 1].kind == RAW_NEWLINE) before--;
  while (p->raw.at[after].kind == RAW_NEWLINE) after++;
  int next = p->raw.at[after].kind;
  return (before > 0 && p->raw.at[before - 1].kind == '.') || next == '=' ||
         (ONE_OF(word, TOK_METRIC, TOK_EVERY) && ONE_OF(next, ',', ':', ')', ']'));
}

/* A name that is a reserved word at its location gets the kind of that word. */
int lex_word_kind(const Parser *p, uint32_t i)
{
  const Token *t = &p->raw.at[i];
  if (t->kind != TOK_NAME) return t->kind;
  const struct Word *word = find_word(t->as.name);
  if (!word || word->use == WORD_top) return TOK_NAME;
  if (word->use == WORD_type) return TOK_DTYPE;
  return in_place_of_name(p, i, word->kind) ? TOK_NAME : word->kind;
}

const char *ast_reserved_word(uint32_t i, bool *top)
{
  if (i >= sizeof words / sizeof words[0]) return NULL;
  *top = words[i].use == WORD_top;
  return words[i].text;
}

int lex_reserved_kind(const char *name)
{
  const struct Word *word = find_word(name);
  return word ? word->kind : 0;
}

bool lex_is_top_word(const char *name)
{
  const struct Word *word = find_word(name);
  return word && word->use == WORD_top;
}

/* These words start a statement and never occur in an expression, except `if` and `for` in
 * comprehensions. */
bool lex_starts_statement(int kind)
{
  return ONE_OF(kind, TOK_DEF, TOK_RETURN, TOK_IF, TOK_FOR, TOK_SCAN, TOK_EMIT, TOK_AUTOCAST,
                TOK_NO_GRAD, TOK_MINIMIZE, TOK_METRIC, TOK_EVERY, TOK_ASSERT);
}

/* An expression can end with these tokens. Then a newline ends the statement. */
bool lex_can_end(int kind)
{
  return kind_closes(kind) || ONE_OF(kind, TOK_NAME, TOK_DTYPE, TOK_INT, TOK_FLOAT, TOK_STRING,
                                     TOK_TRUE, TOK_FALSE, TOK_NONE);
}

/* In a module or op, a `def` at the start of a line is a member. In other blocks it shows that a
 * brace is unclosed. */
bool lex_holds_defs(const Token *first)
{
  return first->kind == TOK_NAME &&
         (strcmp(first->as.name, "module") == 0 || strcmp(first->as.name, "op") == 0);
}

/* `train x in ...` has a block, `train = 3` has none. */
bool lex_needs_block(const Parser *p, uint32_t i)
{
  static const char *const always[] = {"module", "op", "data", "infer", "train", "eval"};
  int kind = lex_word_kind(p, i);
  if (ONE_OF(kind, TOK_IF, TOK_FOR, TOK_SCAN, TOK_NO_GRAD, TOK_EVERY, TOK_DEF)) return true;
  for (size_t k = 0; kind == TOK_NAME && k < sizeof always / sizeof always[0]; k++)
    if (strcmp(p->raw.at[i].as.name, always[k]) == 0) return p->raw.at[i + 1].kind == TOK_NAME;
  return false;
}

/* True for tokens that cannot start a line: `.`, binary operators, commas. */
static bool lex_only_continues(int kind)
{
  return ONE_OF(kind, '.', '*', '/', '%', '@', '<', '>', '|', '&', '+', ',', '=', TOK_POW, TOK_FDIV,
                TOK_LE, TOK_GE, TOK_EQ, TOK_NE, TOK_AUG, TOK_AND, TOK_OR);
}

/* ---- from raw tokens to tokens ---- */

/* The state of the conversion from raw tokens to parser tokens. */
typedef struct Filter {
  Parser *p;
  char open[MAX_OPEN_BRACKETS + 1];
  uint32_t depth;
} Filter;

static int last_kind(const Filter *f)
{
  return f->p->tokens.n ? f->p->tokens.at[f->p->tokens.n - 1].kind : TOK_NL;
}

static void add_token(Filter *f, Token t)
{
  vec_push(f->p->c->arena, &f->p->tokens, t);
}

/* Adds a statement end directly after the last token. `raw`: the raw token that ended it. */
static void add_end(Filter *f, uint32_t raw)
{
  const Tokens *done = &f->p->tokens;
  if (!done->n || last_kind(f) == TOK_NL) return;
  uint32_t at = done->at[done->n - 1].span.end;
  add_token(
      f, (Token){
             .kind = TOK_NL, .span = {at, at}, .raw = raw, .reported = f->p->raw.at[raw].reported});
}

/* True inside ( ) and [ ], where newlines have no meaning. */
static bool in_round(const Filter *f)
{
  return f->depth && f->open[f->depth - 1] != '{';
}

/* Adds a closing bracket. `}` ends the statement before it: `{ return x }` needs no newline. */
static void add_closer(Filter *f, int kind, Token t)
{
  if (kind == '}' && last_kind(f) != '{') add_end(f, t.raw);
  t.kind = kind;
  add_token(f, t);
  if (f->depth) f->depth--;
}

static void add_opener(Filter *f, int kind, Token t)
{
  t.kind = kind;
  add_token(f, t);
  f->open[f->depth++] = (char)kind;
}

/* Adds the bracket that is missing before raw token i. */
static void add_missing(Filter *f, int kind, uint32_t i)
{
  uint32_t at = last_kind(f) == TOK_NL ? f->p->raw.at[i].span.start
                                       : f->p->tokens.at[f->p->tokens.n - 1].span.end;
  Token t = {.span = {at, at}, .raw = i, .reported = true};
  if (kind == '{')
    add_opener(f, kind, t);
  else
    add_closer(f, kind, t);
  if (kind == '}') add_end(f, i);
}

/* Returns the kind of a name or reserved word. Words of declarations count only outside of
 * brackets, at the start of a statement; domains only as the type of a parameter. */
static int name_kind(const Filter *f, uint32_t i)
{
  Parser *p = f->p;
  const struct Word *word = find_word(p->raw.at[i].as.name);
  if (word && word->use == WORD_top && f->depth == 0 && last_kind(f) == TOK_NL &&
      !in_place_of_name(p, i, word->kind))
    return word->kind;
  bool typed = last_kind(f) == ':' && f->depth && f->open[f->depth - 1] == '(';
  if (typed && ampc_domain_by(p->raw.at[i].as.name) < AMPC_DOMAIN_COUNT) return TOK_DTYPE;
  return lex_word_kind(p, i);
}

/* True for the `=` of `opt.lr = 0.01` at the top level. A word that begins declarations is then a
 * name: `train.batch = 64`. */
static bool sets_key(Filter *f)
{
  const Tokens *done = &f->p->tokens;
  uint32_t i = done->n;
  if (f->depth) return false;
  while (i > 2 && done->at[i - 1].kind == TOK_NAME && done->at[i - 2].kind == '.') i -= 2;
  if (!i || i == done->n || (i > 1 && done->at[i - 2].kind != TOK_NL)) return false;
  Token *first = &done->at[i - 1];
  if (ONE_OF(first->kind, TOK_IMPORT, TOK_CONST, TOK_DIM, TOK_MODULE, TOK_OP, TOK_DATA, TOK_MODEL,
             TOK_OPTIMIZER, TOK_PRECISION, TOK_TRAIN, TOK_EVAL, TOK_INFER))
    first->kind = TOK_NAME;
  return first->kind == TOK_NAME;
}

/* If the next line wrongly begins with a token that continues this line, reports that, joins the
 * lines and returns true. */
static bool tell_joined(Filter *f, uint32_t newline)
{
  Parser *p = f->p;
  uint32_t i = newline;
  while (p->raw.at[i].kind == RAW_NEWLINE) i++;
  Token *t = &p->raw.at[i];
  int kind = lex_word_kind(p, i);
  if (kind == TOK_ELSE && last_kind(f) == '}') {
    parse_problem(p, E101, t->span, "`else` cannot start a line", "write `} else {`");
  } else if (kind == '{') {
    parse_problem(p, E102, t->span, "`{` cannot start a line",
                  "it stands at the end of the line above");
  } else if (lex_only_continues(kind) && kind != TOK_FDIV && kind != '@') {
    parse_problem(p, E105, t->span,
                  arena_printf(p->c->arena, "a line cannot start with %s", parse_found(p, t)),
                  "end the line above with it, or use `( )`");
  } else {
    return false;
  }
  t->reported = true;
  return true;
}

/* Handles a raw token: drops it, passes it on, or turns it into a statement end. */
static void add_raw(Filter *f, uint32_t i)
{
  Token t = f->p->raw.at[i];
  bool can_end = lex_can_end(last_kind(f)), round = in_round(f);
  t.raw = i;
  if (t.kind == RAW_NEWLINE) {
    if (!round && can_end && !tell_joined(f, i)) add_end(f, i);
  } else if (t.kind == RAW_SEMICOLON && !round) {
    if (can_end) add_end(f, i);
  } else if (kind_closes(t.kind)) {
    add_closer(f, t.kind, t);
  } else if (kind_opens(t.kind)) {
    add_opener(f, t.kind, t);
  } else {
    if (t.kind == TOK_NAME) t.kind = name_kind(f, i);
    if (t.kind == '=' && sets_key(f)) t.kind = TOK_SETS;
    if (!t.kind) add_end(f, i);
    add_token(f, t);
  }
}

/* lex_brackets() comes first: each Break adds a bracket (`close`) or leaves out a raw token. */
void lex_tokens(Parser *p)
{
  Breaks breaks = lex_brackets(p);
  Filter f = {.p = p};
  uint32_t next = 0;
  for (uint32_t i = 0; i < p->raw.n; i++) {
    bool leave_out = false;
    for (; next < breaks.n && breaks.at[next].raw == i; next++) {
      if (breaks.at[next].close)
        add_missing(&f, breaks.at[next].close, i);
      else
        leave_out = true;
    }
    if (!leave_out) add_raw(&f, i);
  }
}
