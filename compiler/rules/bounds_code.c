/* Evaluates the code column of the op table with intervals instead of numbers. So the bounds of an
 * op follow from its row, and an op that is added has bounds, too. The same operand in two places
 * counts as two numbers: x - x is not 0. Where that loses too much, bounds.c has a rule.
 *
 * Labels and indices are assumed to be valid, since a run ends at the first one that is not. */
#include "bounds.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* `piece` and `at`, an offset in the text of this piece, advance through a statement once. */
typedef struct Reader {
  const Node *n;
  const Interval *in;
  Interval length;
  const CodeStatement *s;
  uint32_t piece, at;
  Interval named[MAX_STATEMENTS]; /* the results of the statements before */
} Reader;

/* ---- the text ---- */

/* Returns the present piece; NULL at the end. Skips spaces, and pieces whose condition is false. */
static const CodePiece *piece_at(Reader *r)
{
  while (r->piece < r->s->n_pieces) {
    const CodePiece *p = &r->s->pieces[r->piece];
    bool text = p->kind == PIECE_text;
    while (text && r->at < p->size && p->text[r->at] == ' ') r->at++;
    if (code_stands(r->n, p->condition) && !(text && r->at == p->size)) return p;
    r->piece++;
    r->at = 0;
  }
  return NULL;
}

/* Returns the next character of the text; 0: at the end, or before another piece. */
static char next_char(Reader *r)
{
  const CodePiece *p = piece_at(r);
  return p && p->kind == PIECE_text ? p->text[r->at] : 0;
}

/* Skips one of these characters. Returns it; 0: the next character is another one. */
static char take(Reader *r, const char *any)
{
  char c = next_char(r);
  if (!c || !strchr(any, c)) return 0;
  r->at++;
  return c;
}

/* ---- expressions ---- */

static Interval choice(Reader *r);

static Interval number(Reader *r)
{
  const CodePiece *p = piece_at(r);
  char *end;
  double v = strtod(p->text + r->at, &end);
  r->at = (uint32_t)(end - p->text);
  return interval_of(v);
}

static Interval call(Reader *r, const CodePiece *p)
{
  Interval args[MAX_SIGNATURE];
  uint32_t n = 0;
  take(r, "(");
  while (!take(r, ")")) {
    args[n++] = choice(r);
    take(r, ",");
  }
  return interval_call(p->text, p->size, args, n);
}

static Interval operand(const Reader *r, const CodePiece *p)
{
  bool there = p->input < r->n->n_in && r->n->in[p->input].id;
  return there || !p->absent ? r->in[p->input] : interval_of(strtod(p->absent, NULL));
}

static Interval attribute(const Reader *r, uint32_t i)
{
  bool real = op_of(r->n)->signature.attr[i].kind == ATTR_float;
  return interval_of(real ? r->n->attr[i].f : (double)r->n->attr[i].i);
}

/* Returns the result of the statement that defines a name. */
static Interval named(const Reader *r, const CodePiece *p)
{
  const CodeStatement *s = op_of(r->n)->code.statements;
  uint32_t i = 0;
  while (!s[i].name || strncmp(s[i].name, p->text, p->size) != 0 || s[i].name[p->size]) i++;
  return r->named[i];
}

static Interval value(Reader *r)
{
  const CodePiece *p = piece_at(r);
  r->piece++;
  r->at = 0;
  switch (p->kind) {
  case PIECE_call:
    return call(r, p);
  case PIECE_name:
    return named(r, p);
  case PIECE_element:
  case PIECE_row_value:
    return operand(r, p);
  case PIECE_attribute:
    return attribute(r, p->attribute);
  case PIECE_length:
    return r->length;
  case PIECE_drawn:
    return memcmp(p->text, "$normal", 7) == 0 ? INTERVAL_NORMAL : (Interval){0, 1};
  default: /* indices and numbers of rows */
    return (Interval){0, fmax(r->length.high, (double)ir_elements(r->n))};
  }
}

static Interval factor(Reader *r)
{
  char c = next_char(r);
  if (c >= '0' && c <= '9') return number(r);
  if (take(r, "-")) return interval_neg(factor(r));
  if (take(r, "!")) return factor(r), (Interval){0, 1};
  if (!take(r, "(")) return value(r);
  Interval inside = choice(r);
  take(r, ")");
  return inside;
}

static Interval term(Reader *r)
{
  Interval a = factor(r);
  for (char c; (c = take(r, "*/"));) {
    Interval b = factor(r);
    a = c == '*' ? interval_mul(a, b) : interval_div(a, b);
  }
  return a;
}

static Interval sum(Reader *r)
{
  Interval a = term(r);
  for (char c; (c = take(r, "+-"));) {
    Interval b = term(r);
    a = interval_add(a, c == '+' ? b : interval_neg(b));
  }
  return a;
}

/* Reads comparisons and what joins them; their result is 0 or 1. */
static Interval test(Reader *r)
{
  Interval a = sum(r);
  while (take(r, "<>=!&|")) {
    while (take(r, "=&|")) continue;
    sum(r);
    a = (Interval){0, 1};
  }
  return a;
}

/* Reads a ? b : c. The result is b or c. */
static Interval choice(Reader *r)
{
  Interval a = test(r);
  if (!take(r, "?")) return a;
  a = choice(r);
  take(r, ":");
  return interval_join(a, choice(r));
}

/* ---- statements ---- */

static Interval statement(Reader *r)
{
  r->piece = r->at = 0;
  Interval each = choice(r);
  switch (r->s->kind) {
  case STATEMENT_sum:
    return interval_sum(each, r->length);
  case STATEMENT_product:
    return INTERVAL_ANY;
  case STATEMENT_near:
    return interval_widen(each, 0x1p-20);
  case STATEMENT_first:
    return (Interval){0, r->length.high - 1};
  default:
    return each;
  }
}

Interval interval_of_code(const Node *n, const Interval *in, Interval length)
{
  const OpCode *code = &op_of(n)->code;
  Reader r = {.n = n, .in = in, .length = length};
  Interval last = INTERVAL_ANY;
  for (uint32_t i = 0; i < code->n_statements; i++) {
    r.s = &code->statements[i];
    if (code_stands(n, r.s->condition)) last = r.named[i] = statement(&r);
  }
  return last;
}
