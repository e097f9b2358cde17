/* Lays out the text of a job. The author decides where lines end; this file decides the indentation
 * and the blanks within a line. It works on tokens, because a tree has no comments.
 *
 * First each line becomes cells: the code, further code after `;` and more than one blank, and a
 * comment. Authors align the second and third kind: cells that stand directly below each other in
 * the source stay so. If the smallest gap between code and such a cell is at most NEAR blanks, that
 * gap stays. Otherwise the column stays, if the code leaves room. */
#include "fmt.h"
#include "compiler/base/limits.h"
#include "compiler/syntax/lex_words.h"
#include "compiler/syntax/source.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* BLOCK, CONTINUED: blanks before the lines of a block, and before a line that continues a
 * statement. More columns than MOST_COLUMNS in a line are not aligned. */
enum { BLOCK = 2, CONTINUED = 4, TAB = 8, NEAR = 2, MOST_COLUMNS = 8 };

typedef struct Cell {
  uint32_t at, size; /* its text, in Fmt.body */
  uint32_t source;   /* its column in the source, from 0 */
  uint32_t gap;      /* columns between it and the code before it, in the source */
  uint32_t column;   /* its column in the result */
} Cell;

typedef struct Line {
  uint32_t first, n; /* its cells of code in Fmt.cells; a comment's second line has none */
  Cell comment;      /* size 0: none */
  bool blank;        /* an empty line precedes it */
  uint32_t indent;
  uint32_t end; /* column after the cells that have been placed */
} Line;

typedef struct Open { /* an open bracket; numbers are columns */
  int kind;
  uint32_t line;           /* indent of a line that begins with the closing bracket */
  uint32_t inside;         /* indent of other lines inside */
  uint32_t source, column; /* of the token after a ( or [: in the source, in the result; or 0 */
  bool typed;              /* the current parameter has a type: `x: int = 3`, but `f(x=3)` */
} Open;

typedef struct Fmt {
  Arena *arena;
  const char *text; /* the source, and a position in it with its column */
  uint32_t at, column;
  uint32_t end; /* column after the last token of the source */
  Text body;    /* the cells' texts, one after the other */
  VEC(Cell) cells;
  VEC(Line) lines;
  VEC(Open) open;
  int left;       /* kind of the last token; 0: none */
  bool unary;     /* the last token is the sign of an operand */
  bool with;      /* after the `with` of this statement: `batch=128` */
  bool opened;    /* the last line ends with an opening bracket, before its comment */
  uint32_t start; /* indent of the line where the statement begins */
} Fmt;

static uint32_t column_after(uint32_t column, const char *s, size_t n)
{
  for (const char *end = s + n; s < end; s++) {
    if (*s == '\n')
      column = 0;
    else if (*s == '\t')
      column += TAB - column % TAB;
    else
      column += ((unsigned char)*s & 0xc0) != 0x80; /* counts characters of UTF-8 */
  }
  return column;
}

/* Returns the column of an offset in the source. Offsets must not decrease. */
static uint32_t column_at(Fmt *f, uint32_t at)
{
  f->column = column_after(f->column, f->text + f->at, at - f->at);
  f->at = at;
  return f->column;
}

/* ---- lines ---- */

static Open *innermost(const Fmt *f)
{
  return f->open.n ? &f->open.at[f->open.n - 1] : NULL;
}

/* Begins a line whose first token or comment is at `at` in the source. `kind`: its first token; 0:
 * a comment. */
static void begin_line(Fmt *f, uint32_t at, int kind, bool continues, bool blank)
{
  Open *open = innermost(f);
  bool round = open && open->kind != '{', closes = open && kind_closes(kind);
  uint32_t indent = open ? open->inside : 0;
  if (open && f->left == '[') indent = open->inside = open->line + BLOCK;
  if (closes)
    indent = open->line;
  else if (round && open->source && open->source == column_at(f, at))
    indent = open->column;
  else if (continues && !round)
    indent = f->start + CONTINUED;
  if (!continues) f->start = indent;
  blank = blank && f->lines.n && !f->opened && !closes;
  vec_push(f->arena, &f->lines, (Line){.first = f->cells.n, .indent = indent, .blank = blank});
}

static void begin_cell(Fmt *f, uint32_t source)
{
  Cell cell = {.at = (uint32_t)f->body.n, .source = source, .gap = source - f->end};
  vec_push(f->arena, &f->cells, cell);
  f->lines.at[f->lines.n - 1].n++;
}

/* Adds a comment that follows `newlines` line ends. If it begins a line directly below the comment
 * of a line of code, it continues that comment; else it is a line of its own. */
static void put_comment(Fmt *f, uint32_t at, uint32_t size, uint32_t newlines, bool continues)
{
  uint32_t column = column_at(f, at);
  bool own = newlines || !f->lines.n;
  const Line *last = f->lines.n ? &f->lines.at[f->lines.n - 1] : NULL;
  bool below = newlines == 1 && last && last->comment.size && last->comment.source == column;
  if (own) begin_line(f, at, 0, continues, newlines > 1);
  if (own && !below) begin_cell(f, 0);
  Cell *cell = own && !below ? &f->cells.at[f->cells.n - 1] : &f->lines.at[f->lines.n - 1].comment;
  *cell = (Cell){(uint32_t)f->body.n, size, .source = column, .gap = column - f->end};
  text_add(&f->body, f->text + at, size);
  if (own) f->opened = false;
}

/* Reads the text before a token. Returns its number of line ends after the last comment. */
static uint32_t put_comments(Fmt *f, uint32_t at, uint32_t end, bool continues)
{
  uint32_t newlines = 0;
  while (at < end) {
    if (f->text[at] != '#') {
      newlines += f->text[at++] == '\n';
      continue;
    }
    const char *stop = memchr(f->text + at, '\n', end - at);
    uint32_t next = stop ? (uint32_t)(stop - f->text) : end, size = next - at;
    while (strchr(" \t\r\f\v", f->text[at + size - 1])) size--;
    put_comment(f, at, size, newlines, continues);
    newlines = 0;
    at = next;
  }
  return newlines;
}

/* ---- tokens ---- */

/* Whether a blank stands between the last token and the next one in the line. */
static bool is_apart(const Fmt *f, int kind)
{
  const Open *open = innermost(f);
  int left = f->left;
  bool square = open && open->kind == '[';
  bool argument = open && open->kind == '(' ? !open->typed : f->with;
  if (ONE_OF(kind, ')', ']', ',', ';', '.') || ONE_OF(left, '(', '[', '.') || f->unary)
    return false;
  if (kind == ':') return square && left == ',';
  if (left == ':') return !square;
  if (kind == '=' || left == '=') return !argument;
  if (kind == '(' || kind == '[') return !lex_can_end(left) && left != TOK_AUTOCAST;
  return true;
}

/* Remembers what the next tokens need to know about this one. */
static void pass_token(Fmt *f, int kind)
{
  Open *open = innermost(f);
  if (kind_closes(kind)) {
    if (kind == '}') f->start = open->line; /* `} else {` belongs to the line of the `if` */
    f->open.n--;
  } else if (kind_opens(kind)) {
    uint32_t line = kind == '{' ? f->start : f->lines.at[f->lines.n - 1].indent;
    uint32_t inside = line + (kind == '{' ? BLOCK : CONTINUED);
    vec_push(f->arena, &f->open, (Open){.kind = kind, .line = line, .inside = inside});
  } else if (open && (kind == ':' || kind == ',')) {
    open->typed = kind == ':';
  }
  f->with = kind == TOK_WITH || (f->with && kind != '{');
  f->unary = ONE_OF(kind, '-', '~', '*') && !lex_can_end(f->left);
  f->opened = kind_opens(kind);
  f->left = kind;
}

/* Adds a token of the source. `gap`: bytes between it and the token before in the line. */
static void put_token(Fmt *f, int kind, Span span, uint32_t gap)
{
  Line *line = &f->lines.at[f->lines.n - 1];
  bool column = f->left == ';' && gap > 1 && line->n && line->n < MOST_COLUMNS;
  if (!line->n || column)
    begin_cell(f, column_at(f, span.start));
  else if (is_apart(f, kind))
    text_puts(&f->body, " ");
  if (line->n == 1 && f->opened && f->left != '{') {
    const Cell *code = &f->cells.at[line->first];
    innermost(f)->source = column_at(f, span.start);
    innermost(f)->column = column_after(line->indent, f->body.at + code->at, f->body.n - code->at);
  }
  text_add(&f->body, f->text + span.start, span.end - span.start);
  Cell *cell = &f->cells.at[f->cells.n - 1];
  cell->size = (uint32_t)f->body.n - cell->at;
  f->end = column_at(f, span.end);
  pass_token(f, kind);
}

/* Makes lines of the raw tokens. Their kinds come from the tokens, where reserved words have kinds
 * of their own. Only raw tokens include `;`; only tokens include the ends of statements. */
static void read_tokens(Fmt *f, const Parser *p)
{
  uint32_t base = p->source->base, end = 0;
  if (strncmp(f->text, "\xef\xbb\xbf", 3) == 0) f->at = end = 3;
  for (uint32_t i = 0, k = 0; i < p->raw.n; i++) {
    const Token *raw = &p->raw.at[i];
    if (raw->kind == RAW_NEWLINE) continue;
    Span span = {raw->span.start - base, raw->span.end - base};
    bool ended = ONE_OF(f->left, 0, '{', ';') || raw->kind == RAW_SEMICOLON;
    for (; p->tokens.at[k].kind == TOK_NL && p->tokens.at[k].raw <= i; k++) ended = true;
    if (ended) f->with = false;
    uint32_t newlines = put_comments(f, end, span.start, !ended);
    if (!raw->kind) return;
    int kind = raw->kind == RAW_SEMICOLON ? RAW_SEMICOLON : p->tokens.at[k].kind;
    if (newlines || !f->lines.n) begin_line(f, span.start, kind, !ended, newlines > 1);
    put_token(f, kind, span, newlines ? 0 : span.start - end);
    k += p->tokens.at[k].raw == i;
    end = span.end;
  }
}

/* ---- columns ---- */

/* Returns a line's cell of column `k`, from 1 on; 0: its comment. NULL: it has none. */
static Cell *cell_of(const Fmt *f, uint32_t i, uint32_t k)
{
  Line *line = &f->lines.at[i];
  if (k) return k < line->n ? &f->cells.at[line->first + k] : NULL;
  return line->comment.size ? &line->comment : NULL;
}

/* Returns the end of the cells of column `k` from line `i` on that stand below each other. */
static uint32_t end_of_column(const Fmt *f, uint32_t i, uint32_t k)
{
  uint32_t source = cell_of(f, i, k)->source;
  while (++i < f->lines.n && !f->lines.at[i].blank) {
    const Cell *cell = cell_of(f, i, k);
    if (!cell || cell->source != source) break;
  }
  return i;
}

/* Returns the new column for the cells of column `k` from line `i` to `end`. */
static uint32_t new_column(const Fmt *f, uint32_t i, uint32_t end, uint32_t k)
{
  uint32_t source = cell_of(f, i, k)->source, code = 0, gap = UINT32_MAX;
  for (; i < end; i++) {
    const Line *line = &f->lines.at[i];
    if (!line->n) continue;
    if (line->end > code) code = line->end;
    if (cell_of(f, i, k)->gap < gap) gap = cell_of(f, i, k)->gap;
  }
  if (gap <= NEAR) return code + (gap ? gap : 1);
  return code < source ? source : code + 1;
}

/* Places the cells of column `k`, at least a blank after the code before them. */
static void place_column(Fmt *f, uint32_t k)
{
  for (uint32_t i = 0; i < f->lines.n;) {
    uint32_t end = cell_of(f, i, k) ? end_of_column(f, i, k) : i + 1;
    uint32_t column = cell_of(f, i, k) ? new_column(f, i, end, k) : 0;
    for (Cell *cell; i < end; i++) {
      if (!(cell = cell_of(f, i, k))) continue;
      cell->column = column;
      f->lines.at[i].end = column_after(column, f->body.at + cell->at, cell->size);
    }
  }
}

/* Places all cells: in each line from left to right. */
static void place(Fmt *f)
{
  for (uint32_t i = 0; i < f->lines.n; i++) {
    Line *line = &f->lines.at[i];
    Cell *first = &f->cells.at[line->first];
    if (!line->n) continue;
    first->column = line->indent;
    line->end = column_after(line->indent, f->body.at + first->at, first->size);
  }
  for (uint32_t k = 1; k < MOST_COLUMNS; k++) place_column(f, k);
  place_column(f, 0);
}

static uint32_t put_cell(const Fmt *f, const Cell *cell, uint32_t column, Text *out)
{
  text_printf(out, "%*s", (int)(cell->column - column), "");
  text_add(out, f->body.at + cell->at, cell->size);
  return column_after(cell->column, f->body.at + cell->at, cell->size);
}

/* Prints the lines. Stops if the result is larger than a file may be. */
static void put_lines(const Fmt *f, Text *out)
{
  for (uint32_t i = 0; i < f->lines.n && out->n <= MAX_SOURCE; i++) {
    const Line *line = &f->lines.at[i];
    uint32_t column = 0;
    if (line->blank) text_puts(out, "\n");
    for (uint32_t k = 0; k < line->n; k++)
      column = put_cell(f, &f->cells.at[line->first + k], column, out);
    if (line->comment.size) put_cell(f, &line->comment, column, out);
    text_puts(out, "\n");
  }
}

/* ---- the result ---- */

static const char *skip_blanks(const char *s)
{
  return s + strspn(s, " \t\r\f\v\n");
}

/* Whether the texts differ only in blanks and line ends. */
static bool same_bytes(const char *a, const char *b)
{
  if (strncmp(a, "\xef\xbb\xbf", 3) == 0) a += 3;
  for (;; a++, b++) {
    a = skip_blanks(a);
    b = skip_blanks(b);
    if (*a != *b) return false;
    if (!*a) return true;
  }
}

/* Whether the result has the tokens of the source. */
static bool same_tokens(const Parser *p, const Text *result)
{
  Compile *c = compile_create(&(Options){.error_limit = 1, .silent = true});
  uint32_t base = diag_add_source(c, "", result->at, (uint32_t)result->n, false);
  Parser q;
  bool same = parse_start(&q, c, base, c->ast) && q.tokens.n == p->tokens.n;
  for (uint32_t i = 0; same && i < p->tokens.n; i++) {
    const Token *a = &p->tokens.at[i], *b = &q.tokens.at[i];
    size_t size = a->span.end - a->span.start;
    same = a->kind == b->kind && b->span.end - b->span.start == size &&
           memcmp(p->source->text + (a->span.start - p->source->base),
                  q.source->text + (b->span.start - base), size) == 0;
  }
  compile_destroy(c);
  return same;
}

bool fmt_text(Compile *c, const char *name, const char *text, uint32_t size, Text *out)
{
  uint32_t errors = diag_error_count(c);
  uint32_t base = diag_add_source(c, name, text, size, false);
  Parser p;
  if (!parse_start(&p, c, base, arena_new(c->arena, Ast))) return false;
  parse_run(&p);
  if (diag_error_count(c) != errors) return false;
  Fmt f = {.arena = c->arena, .text = text, .body = text_new(c->arena)};
  Text result = text_new(c->arena);
  read_tokens(&f, &p);
  place(&f);
  put_lines(&f, &result);
  if (result.n > MAX_SOURCE)
    return diag_error(c, E100, (Span){base, base}, "formatted, the file has more than %d bytes",
                      MAX_SOURCE);
  if (!same_bytes(text, result.at) || !same_tokens(&p, &result)) {
    fprintf(stderr, "fmt: the result has other tokens than %s\n", arena_shown(c->arena, name, ""));
    abort();
  }
  text_add(out, result.at, result.n);
  return true;
}
