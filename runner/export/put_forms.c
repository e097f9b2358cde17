/* Ops that put_forms.def gives as formulas. A formula is evaluated with nodes of the ONNX graph as
 * its values. */
#include "compiler/graph/ops.h"
#include "put_ops.h"

static const struct {
  OpKind op;
  const char *text;
} forms[] = {
#define PUT_FORM(op, text) {OP_##op, text},
#include "put_forms.def"
#undef PUT_FORM
};

/* A formula under evaluation */
typedef struct Form {
  Export *e;
  const Node *n; /* has the attributes */
  DType type;    /* in which ONNX computes it */
  OpCode code;
  const char *in[MAX_SIGNATURE], *named[MAX_STATEMENTS];
} Form;

static const char *form_text(OpKind op)
{
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (forms[i].op == op) return forms[i].text;
  return NULL;
}

static const char *put_op_of(const Form *f, OpKind op, const char *const *in);

static const char *put_part(const Form *f, const Formula *part)
{
  const char *in[MAX_SIGNATURE + 1] = {NULL};
  if (code_is_number(&f->code, part))
    return build_number(f->e->b, f->type, code_number(f->n, &f->code, part));
  if (part->kind == FORMULA_element) return f->in[part->index];
  if (part->kind == FORMULA_name)
    return f->named[code_statement(&f->code, part->name) - f->code.statements];
  for (uint32_t i = 0; i < part->n; i++) in[i] = put_part(f, part->in[i]);
  return put_op_of(f, code_op(part), in);
}

/* Appends an op of ONNX, or the formula of an op with these operands. */
static const char *put_op_of(const Form *f, OpKind op, const char *const *in)
{
  const char *text = form_text(op), *value = NULL;
  if (!text) return build_node(f->e->b, onnx_same(op), in, NO_ATTRS);
  Form inner = {.e = f->e, .n = f->n, .type = f->type};
  inner.code = lets_parse(f->e->arena, op_row(op)->name, text, &op_row(op)->signature, false);
  for (uint32_t i = 0; in[i]; i++) inner.in[i] = in[i];
  for (uint32_t i = 0; i < inner.code.n_statements; i++) {
    const CodeStatement *s = &inner.code.statements[i];
    value = inner.named[i] = put_part(&inner, s->value);
  }
  return value;
}

const char *put_form(Export *e, const Node *n)
{
  Form f = {.e = e, .n = n, .type = put_type(n->dtype)};
  const char *in[MAX_SIGNATURE + 1] = {NULL};
  for (uint32_t i = 0; i < n->n_in; i++) in[i] = in_as(e, n, i, f.type);
  return put_cast(e, put_op_of(&f, n->op, in), f.type, n->dtype);
}
