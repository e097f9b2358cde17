/* Matches brackets, and finds where unclosed ones must have ended.
 *
 * Inside ( ) and [ ] a newline has no meaning, so one unclosed bracket would swallow the rest of
 * the file. But no expression contains a brace or the first word of a statement: a ( or [ that is
 * open there is unclosed. It is then closed at the end of the first line after which the expression
 * cannot continue, so the parser does not run into the error. An unclosed { is closed at a
 * declaration that is not indented more than the line of the {. If that does not suffice, the
 * indentation of `}` decides. */
#include "parse.h"
#include "lex_words.h"
#include <stdlib.h>

typedef struct Open {
  int kind;
  uint32_t raw;    /* index of its raw token */
  uint32_t indent; /* column where its line starts */
  bool holds_defs; /* the body of a module or an op */
  bool in_round;   /* a { inside ( ) or [ ], which is an error */
} Open;

typedef struct Matcher {
  Parser *p;
  VEC(Open) open;
  uint32_t *end; /* indexed by an opening raw token: the raw token after its closing one */
  Breaks breaks;
  Problems problems;
  uint32_t line_start, statement; /* first raw tokens of the line and of the statement */
  bool needs_brace;               /* the statement must have a block, and no `{` has opened it */
  bool by_indent, by_header;      /* ways to guess: see lex_brackets() */
  bool cut, unclosed_brace, stray_brace;
} Matcher;

static const Token *raw_at(const Matcher *m, uint32_t i)
{
  return &m->p->raw.at[i];
}

/* The layout is only a hint: it decides where an unclosed bracket ends, but never the meaning of a
 * correct program. */
static uint32_t column(const Matcher *m, uint32_t i)
{
  return diag_place(m->p->c, raw_at(m, i)->span).column;
}

static uint32_t line(const Matcher *m, uint32_t i)
{
  return diag_place(m->p->c, raw_at(m, i)->span).line;
}

static bool first_on_line(const Matcher *m, uint32_t i)
{
  return i == 0 || raw_at(m, i - 1)->kind == RAW_NEWLINE;
}

/* True if the innermost open bracket is a ( or [. */
static bool in_round(const Matcher *m)
{
  return m->open.n && m->open.at[m->open.n - 1].kind != '{';
}

static int closer_of(int open)
{
  return open == '(' ? ')' : open == '[' ? ']' : '}';
}

static void add_problem(Matcher *m, Problem problem)
{
  vec_push(m->p->c->arena, &m->problems, problem);
}

/* ---- where an unclosed ( or [ ends ---- */

/* True if the expression that ends before raw token i cannot continue with it. Two adjacent
 * operands, as in `a b`, never belong to one expression, and the first word of a statement never
 * belongs to any. A `)` or `]` may close a bracket. */
static bool cannot_continue(const Matcher *m, uint32_t i)
{
  int kind = lex_word_kind(m->p, i);
  return lex_can_end(kind) ? kind != ')' && kind != ']' : kind == '{' || lex_starts_statement(kind);
}

/* Returns the newline before `stop` where the bracket `open` should have been closed; `stop` if
 * there is no such newline. */
static uint32_t find_break(const Matcher *m, uint32_t open, uint32_t stop)
{
  uint32_t last = stop, next;
  for (uint32_t i = open + 1; i < stop; i++) {
    if (m->end[i]) { /* a closed bracket inside */
      i = m->end[i] - 1;
      continue;
    }
    if (raw_at(m, i)->kind != RAW_NEWLINE) continue;
    for (next = i; next < stop && raw_at(m, next)->kind == RAW_NEWLINE;) next++;
    last = i;
    if (lex_can_end(lex_word_kind(m->p, i - 1)) && cannot_continue(m, next)) return i;
    i = next - 1;
  }
  return last;
}

/* Reports where the bracket must have been closed, and the token that was found there. */
static void report_open(Matcher *m, const Open *open, uint32_t stop, uint32_t end)
{
  Arena *a = m->p->c->arena;
  const Token *from = raw_at(m, open->raw);
  uint32_t found = end;
  while (found < stop && raw_at(m, found)->kind == RAW_NEWLINE) found++;
  const Token *to = raw_at(m, found);
  uint32_t opened = line(m, open->raw);
  Problem problem = {.code = E103};
  if (to->kind == 0) {
    problem.span = from->span;
    problem.text = arena_printf(a, "`%c` is still open at the end of the file", open->kind);
  } else {
    problem.span = to->span;
    problem.text = arena_printf(a, "`%c` opened at line %u is still open at %s, line %u",
                                open->kind, opened, parse_found(m->p, to), line(m, found));
    problem.note_span = from->span;
    problem.note = "it is opened here";
  }
  if (open->kind != '{' && end > open->raw + 1 && line(m, end - 1) < line(m, found))
    problem.help = arena_printf(a, "close it before the end of line %u", line(m, end - 1));
  else
    problem.help = arena_printf(a, "close it with `%c`", closer_of(open->kind));
  add_problem(m, problem);
}

/* Closes the innermost open bracket, which cannot be open at raw token `stop`, and returns where.
 * Not reported if another bracket that ends there (`told`) has been. */
static uint32_t close_unclosed(Matcher *m, uint32_t stop, uint32_t told)
{
  Arena *a = m->p->c->arena;
  Open open = m->open.at[--m->open.n];
  uint32_t end = stop;
  if (open.kind == '{')
    m->unclosed_brace = true;
  else
    end = find_break(m, open.raw, stop);
  vec_push(a, &m->breaks, (Break){end, closer_of(open.kind), open.raw});
  m->end[open.raw] = end;
  if (end != told && !m->cut) report_open(m, &open, stop, end);
  return end;
}

#define NOWHERE UINT32_MAX

/* Closes all ( and [ inside the innermost {. */
static void close_round(Matcher *m, uint32_t stop)
{
  uint32_t told = NOWHERE;
  while (in_round(m)) told = close_unclosed(m, stop, told);
}

/* ---- the walk ---- */

/* Handles an opening bracket. A `{` after the end of an expression starts a block, so no ( or [ can
 * be open there. */
static void push_open(Matcher *m, uint32_t i)
{
  Parser *p = m->p;
  Token *t = &p->raw.at[i];
  if (t->kind == '{' && (!i || lex_can_end(lex_word_kind(p, i - 1)))) close_round(m, i);
  if (t->kind == '{') m->needs_brace = false;
  if (m->open.n == MAX_OPEN_BRACKETS) {
    add_problem(m, (Problem){.code = E100,
                             .span = t->span,
                             .text = arena_printf(p->c->arena, "more than %d brackets are open",
                                                  MAX_OPEN_BRACKETS)});
    m->cut = true;
    p->raw.n = i + 1; /* the rest is not read */
    *t = (Token){.kind = 0, .span = {t->span.start, t->span.start}};
    return;
  }
  bool holds_defs = lex_holds_defs(raw_at(m, m->statement));
  Open open = {t->kind, i, column(m, m->line_start), holds_defs, t->kind == '{' && in_round(m)};
  vec_push(p->c->arena, &m->open, open);
}

/* True if a bracket of this kind is open, so that its closing bracket can close it. */
static bool is_open(const Matcher *m, int kind)
{
  for (uint32_t i = m->open.n; i-- > 0;) {
    int open = m->open.at[i].kind;
    if (open == kind) return true;
    if (open == '{' && !m->open.at[i].in_round) return false; /* ) and ] close no block */
  }
  return false;
}

/* Closes inner blocks before a `}` that begins a line, if it is further left than the innermost
 * block, and another open block starts in its column. */
static void close_by_indent(Matcher *m, uint32_t i)
{
  if (!m->by_indent || !first_on_line(m, i)) return;
  uint32_t at = column(m, i), same = m->open.n;
  while (same > 0 && m->open.at[same - 1].indent > at) same--;
  if (!same || m->open.at[same - 1].indent != at) return;
  while (m->open.n > same) close_unclosed(m, i, NOWHERE);
}

/* True if this line has a message about brackets. Further mismatches on it are consequences. */
static bool told_on_line(const Matcher *m, Span span)
{
  if (!m->problems.n) return false;
  const Problem *last = &m->problems.at[m->problems.n - 1];
  return diag_place(m->p->c, last->span).line == diag_place(m->p->c, span).line;
}

/* Handles a closing bracket. Inner brackets that are still open are closed before it. A bracket
 * that closes none, or another kind, is an error and is left out. */
static void pop_open(Matcher *m, uint32_t i)
{
  Arena *a = m->p->c->arena;
  const Token *t = raw_at(m, i);
  int open = t->kind == ')' ? '(' : t->kind == ']' ? '[' : '{';
  if (open == '{') {
    close_round(m, i);
    close_by_indent(m, i);
  }
  if (is_open(m, open)) {
    uint32_t told = NOWHERE;
    while (m->open.at[m->open.n - 1].kind != open) told = close_unclosed(m, i, told);
    m->end[m->open.at[--m->open.n].raw] = i + 1;
    return;
  }
  Problem problem = {.code = E103, .span = t->span};
  const Open *top = m->open.n ? &m->open.at[m->open.n - 1] : NULL;
  if (top && top->kind != '{') { /* (a] */
    problem.text = arena_printf(a, "`%c` is closed by `%c`", top->kind, t->kind);
    problem.note_span = raw_at(m, top->raw)->span;
    problem.note = "it is opened here";
    vec_push(a, &m->breaks, (Break){i, closer_of(top->kind), top->raw});
    m->end[top->raw] = i + 1;
    m->open.n--;
  } else {
    problem.text = arena_printf(a, "this `%c` closes nothing", t->kind);
    m->stray_brace = m->stray_brace || t->kind == '}';
  }
  if (!told_on_line(m, t->span)) add_problem(m, problem);
  vec_push(a, &m->breaks, (Break){i, 0, i});
}

/* Handles a declaration at the start of a line: closes all ( and [, and all blocks whose statement
 * is not further left than the declaration. */
static void meet_declaration(Matcher *m, uint32_t i, bool def)
{
  close_round(m, i);
  uint32_t at = m->open.n ? column(m, i) : 0;
  while (m->open.n && m->open.at[m->open.n - 1].indent >= at) {
    if (def && m->open.at[m->open.n - 1].holds_defs) break;
    close_unclosed(m, i, NOWHERE);
  }
}

/* Handles a name, which may be a reserved word that closes open brackets. */
static void meet_word(Matcher *m, uint32_t i)
{
  const Token *t = raw_at(m, i);
  int kind = lex_word_kind(m->p, i);
  bool starts_line = first_on_line(m, i);
  if (kind == TOK_DEF) {
    if (starts_line)
      meet_declaration(m, i, true);
    else
      close_round(m, i);
  } else if (lex_starts_statement(kind) && kind != TOK_IF && kind != TOK_FOR) {
    close_round(m, i);
  } else if (starts_line && lex_is_top_word(t->as.name)) {
    int next = lex_word_kind(m->p, i + 1);
    if (next == TOK_NAME || next == TOK_DTYPE || next == TOK_STRING) meet_declaration(m, i, false);
  }
}

/* Handles a line end: reports a missing `{` if the line has the head of a block without a `{` and
 * the next line is indented more. */
static void meet_line_end(Matcher *m, uint32_t i)
{
  Arena *a = m->p->c->arena;
  uint32_t next = i;
  while (raw_at(m, next)->kind == RAW_NEWLINE) next++;
  bool missing = m->by_header && m->needs_brace && i > m->statement &&
                 lex_can_end(lex_word_kind(m->p, i - 1)) && raw_at(m, next)->kind != '{' &&
                 column(m, next) > column(m, m->line_start);
  m->needs_brace = false;
  if (!missing) return;
  uint32_t end = raw_at(m, i - 1)->span.end;
  add_problem(m, (Problem){.code = E102,
                           .span = {end, end},
                           .text = "expected `{`, found the end of the line",
                           .help = "blocks use braces: `def forward(x) { return fc(x) }`"});
  vec_push(a, &m->breaks, (Break){i, '{', i});
  vec_push(a, &m->open, (Open){.kind = '{', .raw = i, .indent = column(m, m->line_start)});
}

/* True if raw token i is the first of a statement. */
static bool starts_statement(const Matcher *m, uint32_t i)
{
  if (in_round(m)) return false;
  uint32_t last = i;
  while (last > 0 && raw_at(m, last - 1)->kind == RAW_NEWLINE) last--;
  if (!last) return true;
  int before = lex_word_kind(m->p, last - 1);
  if (before == '{' || before == '}' || before == RAW_SEMICOLON) return true;
  if (last - 1 == m->statement && before == TOK_NAME &&
      lex_is_top_word(raw_at(m, last - 1)->as.name))
    return false; /* `module` and its name are in two lines */
  return last < i && lex_can_end(before);
}

/* Records where the statement begins, and if it must have a block. */
static void meet_statement(Matcher *m, uint32_t i)
{
  if (first_on_line(m, i)) m->line_start = i;
  m->statement = i;
  m->needs_brace = lex_needs_block(m->p, i);
}

/* Goes through the raw tokens once. Reports nothing, because it may be repeated with other
 * guesses. */
static void match(Matcher *m)
{
  Parser *p = m->p;
  m->end = arena_array(p->c->arena, uint32_t, p->raw.n);
  for (uint32_t i = 0; p->raw.at[i].kind; i++) {
    int kind = p->raw.at[i].kind;
    if (kind == RAW_NEWLINE && !in_round(m))
      meet_line_end(m, i);
    else if (starts_statement(m, i))
      meet_statement(m, i);
    if (kind_opens(kind))
      push_open(m, i);
    else if (kind_closes(kind))
      pop_open(m, i);
    else if (kind == TOK_NAME && m->open.n)
      meet_word(m, i);
    if (m->cut) break;
  }
  uint32_t told = NOWHERE;
  while (m->open.n) told = close_unclosed(m, p->raw.n - 1, told);
}

static int by_place(const void *a, const void *b)
{
  const Break *x = a, *y = b;
  if (x->raw != y->raw) return x->raw < y->raw ? -1 : 1;
  return x->open == y->open ? 0 : x->open > y->open ? -1 : 1; /* the inner bracket first */
}

/* The first attempt trusts the braces. If they do not match, a second attempt also uses the
 * indentation. Its result is taken if the braces then match. Tokens that depend on a guess are
 * marked `reported`, so that the parser reports no errors about them. */
Breaks lex_brackets(Parser *p)
{
  Matcher m = {.p = p};
  match(&m);
  if (!m.cut && (m.unclosed_brace || m.stray_brace)) { /* again, using the layout */
    Matcher again = {.p = p, .by_indent = m.unclosed_brace, .by_header = m.stray_brace};
    match(&again);
    if (!again.stray_brace) m = again;
  }
  p->stray_brace = m.stray_brace;
  for (uint32_t i = 0; i < m.problems.n; i++) vec_push(p->c->arena, &p->problems, m.problems.at[i]);
  for (uint32_t i = 0; i < m.breaks.n; i++) {
    const Break *b = &m.breaks.at[i];
    for (uint32_t k = b->open; k <= b->raw && p->raw.at[b->open].kind != '{'; k++)
      p->raw.at[k].reported = true;
    p->raw.at[b->raw].reported = true;
  }
  if (m.breaks.n) qsort(m.breaks.at, m.breaks.n, sizeof(Break), by_place);
  return m.breaks;
}
