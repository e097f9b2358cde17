/* Reads programs of row ops (graph/code.h) and prints their statements. Row ops that share a kernel
 * reuse each other's equal statements. */
#include "kernel_row.h"
#include <assert.h>
#include <string.h>

/* ---- reading ---- */

/* Reads the statements of an op. Leaves out statements in brackets whose attribute is 0:
 * [label_smoothing: sum a = $0;]. */
void read_program(RowOp *op)
{
  const OpCode *code = &op_of(op->n)->code;
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    if (!code_stands(op->n, s->condition)) continue;
    assert(op->n_code < MAX_STATEMENTS);
    op->code[op->n_code++] = (Statement){.kind = s->kind, .code = s};
  }
}

/* ---- facts ---- */

bool statement_mentions(const Statement *s, const char *name)
{
  if (s->kind == STATEMENT_first && same_name(s->code->best, name)) return true;
  return formula_mentions(s->code->value, name);
}

uint32_t statement_uses(const RowOp *op, const Statement *s, FormulaKind kind, uint32_t input)
{
  const Formula *value = s->code->value;
  bool chosen = kind == FORMULA_element && code_chooses(op->n, value); /* see operand_uses() */
  uint32_t each = s->kind == STATEMENT_first ? 3 : chosen ? 2 : 1;     /* it is printed 3 times */
  return each * code_reads(op->n, value, kind, input);
}

/* ---- text ---- */

/* Returns the text of a statement. Earlier statements have set `as`, the name of each result. */
const char *statement_text(const RowKernel *r, const RowOp *op, const Statement *s,
                           const Operand *in, const char *const *row)
{
  const char *names[MAX_STATEMENTS + 1] = {NULL}, *texts[MAX_STATEMENTS + 1] = {NULL};
  uint32_t n = 0;
  for (const Statement *before = op->code; before < s; before++) {
    if (!before->code->name) continue;
    names[n] = before->code->name;
    texts[n++] = before->as;
  }
  CodeScope scope = {.k = r->k,
                     .n = op->n,
                     .element = in,
                     .row_value = row,
                     .index = "(i + j)",
                     .column = r->columns ? "c" : "(c + j)",
                     .length = r->shape.length,
                     .length_text = r->shape.parts ? "n" : NULL,
                     .locals = names,
                     .local_texts = texts,
                     .local_suffix = r->columns ? "[j]" : "",
                     .integers = op->integers};
  return code_text(&scope, s->code->value);
}

/* Returns a text that is equal for statements that compute equal bits: node numbers replace
 * operands. So two softmaxes of one value share their maximum. */
static const char *meaning(const RowKernel *r, const RowOp *op, const Statement *s)
{
  Arena *a = r->k->c->arena;
  Operand in[MAX_SIGNATURE] = {{0}};
  const char *row[MAX_SIGNATURE] = {NULL};
  for (uint32_t i = 0; i < op->n->n_in; i++) {
    row[i] = arena_printf(a, "row %u", op->n->in[i].id);
    if (op->n->in[i].id) in[i].text = arena_printf(a, "element %u", op->n->in[i].id);
  }
  const char *text = statement_text(r, op, s, in, row);
  int type = op->integers ? 1 : op->wide ? 2 : 0;
  if (s->kind != STATEMENT_first) return arena_printf(a, "%d %s", type, text);
  return arena_printf(a, "%d %s of %s", op->integers, text, (s - 1)->as);
}

bool statement_is_printed(RowKernel *r, const RowOp *op, Statement *s)
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
    namesakes += strcmp(p->name, s->code->name) == 0;
  }
  const char *name = s->code->name;
  s->as = namesakes ? arena_printf(a, "row_%s_%u", name, namesakes + 1) : name;
  vec_push(a, &r->printed, (Printed){s->kind, name, s->as, text});
  return false;
}
