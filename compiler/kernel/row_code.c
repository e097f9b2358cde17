/* Reads programs of row ops (graph/code.h) and prints their statements. Row ops that share a kernel
 * reuse each other's equal statements. */
#include "row.h"
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

/* ---- equal statements ---- */

/* Returns the kernel's variable for a name that an earlier statement of the program defines. */
static const char *variable_of(const RowOp *op, const char *name)
{
  const Statement *s = op->code;
  while (!s->code->name || !same_name(s->code->name, name)) s++;
  return s->as;
}

static bool same_attribute(const Node *a, uint32_t i, const Node *b, uint32_t k)
{
  AttrKind kind = op_of(a)->signature.attr[i].kind;
  if (kind != op_of(b)->signature.attr[k].kind) return false;
  return kind == ATTR_float ? a->attr[i].f == b->attr[k].f : a->attr[i].i == b->attr[k].i;
}

/* True if f in the program of `a` has the bits of g in that of `b`. Both walk the same rows. */
static bool same_formula(const RowOp *a, const Formula *f, const RowOp *b, const Formula *g)
{
  f = code_standing(a->n, f);
  g = code_standing(b->n, g);
  if (f->kind != g->kind || f->n != g->n) return false;
  bool same = true;
  for (uint32_t i = 0; i < f->n && same; i++) same = same_formula(a, f->in[i], b, g->in[i]);
  if (!same) return false;
  switch (f->kind) {
  case FORMULA_number:
  case FORMULA_call:
    return same_name(f->name, g->name);
  case FORMULA_name:
    return strcmp(variable_of(a, f->name), variable_of(b, g->name)) == 0;
  case FORMULA_element:
  case FORMULA_row_value: /* an absent operand is the same number in ops of one kind */
    return a->n->in[f->index].id == b->n->in[g->index].id &&
           (a->n->in[f->index].id || a->n->op == b->n->op);
  case FORMULA_attribute:
    return same_attribute(a->n, f->index, b->n, g->index);
  case FORMULA_size:
    return a->n->in[0].id == b->n->in[0].id && attr_int(a->n, "rows") == attr_int(b->n, "rows");
  default:
    return true; /* an operator, or a word that is the same in all programs of the kernel */
  }
}

/* Two softmaxes of one value share their maximum. */
static bool same_statement(const RowOp *a, const Statement *s, const RowOp *b, const Statement *t)
{
  if (s->kind != t->kind || a->integers != b->integers) return false;
  if (s->kind == STATEMENT_first && strcmp((s - 1)->as, (t - 1)->as) != 0) return false;
  bool wide = s->kind != STATEMENT_first && a->wide != b->wide;
  return !wide && same_formula(a, s->code->value, b, t->code->value);
}

bool statement_is_printed(RowKernel *r, const RowOp *op, Statement *s)
{
  Arena *a = r->k->c->arena;
  uint32_t namesakes = 0;
  for (uint32_t i = 0; i < r->printed.n; i++) {
    const Use *p = &r->printed.at[i];
    if (same_statement(p->op, p->s, op, s)) {
      s->as = p->s->as;
      return true;
    }
    namesakes += same_name(p->s->code->name, s->code->name);
  }
  const char *name = s->code->name;
  s->as = namesakes ? arena_printf(a, "row_%s_%u", name, namesakes + 1) : name;
  vec_push(a, &r->printed, ((Use){op, s}));
  return false;
}
