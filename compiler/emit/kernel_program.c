/* Row programs (see the note in ops.def): statements, and their text in a kernel. Several row ops
 * may share a kernel; what one of them has reduced, the others do not reduce again. */
#include "kernel_row.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------------
 */

static const char *skip_space(const char *s, const char *end)
{
  while (s < end && isspace((unsigned char)*s)) s++;
  return s;
}

static bool take(const char **s, const char *end, const char *word)
{
  size_t n = strlen(word);
  if ((size_t)(end - *s) <= n || memcmp(*s, word, n) != 0 || !isspace((unsigned char)(*s)[n]))
    return false;
  *s = skip_space(*s + n, end);
  return true;
}

static void add_statement(RowOp *op, Statement s)
{
  assert(op->n_code < MAX_STATEMENTS);
  op->code[op->n_code++] = s;
}

/* argmax k = E is two reductions: the greatest E, then the first index that has it. */
static void add_arg(Kernel *k, RowOp *op, RowKind kind, Statement s)
{
  Statement best = s;
  best.kind = kind;
  best.name = arena_printf(k->c->arena, "%s_best", s.name);
  add_statement(op, best);
  s.kind = ROW_first;
  s.best = best.name;
  add_statement(op, s);
}

static void read_statement(Kernel *k, RowOp *op, const char *s, const char *end)
{
  static const char *const words[] = {"sum", "max",  "min", "argmax", "argmin",
                                      "let", "each", "row", "part"};
  static const RowKind kinds[] = {ROW_sum, ROW_max,  ROW_min, ROW_max, ROW_min,
                                  ROW_let, ROW_each, ROW_row, ROW_part};
  uint32_t w = 0;
  s = skip_space(s, end);
  while (w < sizeof words / sizeof *words && !take(&s, end, words[w])) w++;
  assert(w < sizeof words / sizeof *words);
  Statement out = {.kind = kinds[w]};
  if (kinds[w] < ROW_each) {
    const char *equals = memchr(s, '=', (size_t)(end - s)), *stop = equals;
    while (isspace((unsigned char)stop[-1])) stop--;
    out.name = arena_strndup(k->c->arena, s, (size_t)(stop - s));
    s = skip_space(equals + 1, end);
  }
  out.code = s;
  out.size = (size_t)(end - s);
  if (words[w][0] == 'a')
    add_arg(k, op, kinds[w], out);
  else
    add_statement(op, out);
}

void read_program(Kernel *k, RowOp *op)
{
  for (const char *s = code_of(k->c, op->n); *s;) {
    const char *end = s + strcspn(s, ";");
    read_statement(k, op, s, end);
    s = *end ? end + 1 : end;
  }
}

/* ---- facts --------------------------------------------------------------------------------------
 */

bool statement_mentions(const Statement *s, const char *name)
{
  if (s->kind == ROW_first && strcmp(s->best, name) == 0) return true;
  size_t n = strlen(name);
  for (size_t at = 0; at + n <= s->size; at++) {
    const char *w = s->code + at;
    bool begins = at == 0 || !(isalnum((unsigned char)w[-1]) || w[-1] == '_' || w[-1] == '$');
    bool ends = at + n == s->size || !(isalnum((unsigned char)w[n]) || w[n] == '_');
    if (begins && ends && memcmp(w, name, n) == 0) return true;
  }
  return false;
}

uint32_t statement_uses(const Statement *s, char sign, uint32_t input)
{
  bool chosen =
      sign == '$' && memchr(s->code, '?', s->size) != NULL; /* see count_uses() in kernel_chain.c */
  uint32_t found = 0, each = s->kind == ROW_first ? 3 : chosen ? 2 : 1; /* it is printed 3 times */
  for (size_t at = 0; at + 1 < s->size; at++)
    if (s->code[at] == sign && (uint32_t)(s->code[at + 1] - '0') == input) found += each;
  return found;
}

/* ---- text ---------------------------------------------------------------------------------------
 */

const char *statement_text(const Row *r, const RowOp *op, const Statement *s, const Operand *in,
                           const char *const *row)
{
  const char *names[MAX_STATEMENTS + 1] = {NULL}, *texts[MAX_STATEMENTS + 1] = {NULL};
  uint32_t n = 0;
  for (const Statement *before = op->code; before < s; before++) {
    if (!before->name) continue;
    names[n] = before->name;
    texts[n++] = before->as;
  }
  CodeScope scope = {.k = r->k,
                     .n = op->n,
                     .element = in,
                     .row_value = row,
                     .index = "i",
                     .column = "c",
                     .length = r->length,
                     .length_text = r->parts ? "n" : NULL,
                     .locals = names,
                     .local_texts = texts,
                     .local_suffix = r->columns ? "[j]" : "",
                     .integers = op->integers};
  return code_text(&scope, s->code, s->size);
}

/* The same for statements that compute the same: operands are named by their nodes. */
static const char *meaning(const Row *r, const RowOp *op, const Statement *s)
{
  Arena *a = r->k->c->arena;
  Operand in[MAX_SIGNATURE] = {{0}};
  const char *row[MAX_SIGNATURE] = {NULL};
  for (uint32_t i = 0; i < op->n->n_in; i++) {
    row[i] = arena_printf(a, "row %u", op->n->in[i].id);
    if (op->n->in[i].id) in[i].text = arena_printf(a, "element %u", op->n->in[i].id);
  }
  const char *text = statement_text(r, op, s, in, row);
  if (s->kind != ROW_first) return arena_printf(a, "%d %s", op->integers, text);
  return arena_printf(a, "%d %s of %s", op->integers, text, (s - 1)->as);
}

bool statement_is_printed(Row *r, const RowOp *op, Statement *s)
{
  Arena *a = r->k->c->arena;
  const char *text = meaning(r, op, s);
  uint32_t namesakes = 0;
  for (uint32_t i = 0; i < r->printed.n; i++) {
    const Printed *p = &r->printed.at[i];
    if (p->kind == s->kind && strcmp(p->text, text) == 0) {
      s->as = p->as;
      return true;
    }
    namesakes += strcmp(p->name, s->name) == 0;
  }
  s->as = namesakes ? arena_printf(a, "row_%s_%u", s->name, namesakes + 1) : s->name;
  vec_push(a, &r->printed, (Printed){s->kind, s->name, s->as, text});
  return false;
}
