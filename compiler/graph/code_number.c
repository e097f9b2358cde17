/* Formulas with lets whose functions are ops: gradients, forms of ONNX. What is a number in them,
 * and which op an operator is. */
#include "ops.h"
#include "compiler/base/names.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static _Noreturn void broken(const char *what)
{
  fprintf(stderr, "ampc: a formula has what gradients cannot have: %s\n", what);
  abort();
}

/* True if the formula is one operator on $0, $1, .. */
static bool is_operator(const OpCode *code, FormulaKind kind)
{
  const Formula *f = code->n_statements == 1 ? code->statements[0].value : NULL;
  bool is = f && f->kind == kind;
  for (uint32_t i = 0; is && i < f->n; i++)
    is = f->in[i]->kind == FORMULA_element && f->in[i]->index == i;
  return is;
}

OpKind code_op(const Formula *f)
{
  if (f->kind == FORMULA_call) return op_named(f->name);
  uint32_t op = 0;
  while (op < OP_COUNT && !is_operator(&op_row((OpKind)op)->code, f->kind)) op++;
  if (op == OP_COUNT) broken("an operator without an op");
  return (OpKind)op;
}

bool code_is_number(const OpCode *code, const Formula *f)
{
  if (f->kind == FORMULA_name) {
    const CodeStatement *let = code_statement(code, f->name);
    return let && code_is_number(code, let->value);
  }
  bool is = f->kind != FORMULA_element;
  for (uint32_t i = 0; i < f->n; i++) is &= code_is_number(code, f->in[i]);
  return is;
}

static double call(const char *name, double x)
{
  static const struct {
    const char *name;
    double (*f)(double);
  } functions[] = {{"acos", acos}, {"log", log}, {"sqrt", sqrt}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (same_name(functions[i].name, name)) return functions[i].f(x);
  broken(name);
}

double code_number(const Node *n, const OpCode *code, const Formula *f)
{
  double x = f->n > 0 ? code_number(n, code, f->in[0]) : 0;
  double y = f->n > 1 ? code_number(n, code, f->in[1]) : 0;
  switch (f->kind) {
  case FORMULA_number:
    return strtod(f->name, NULL);
  case FORMULA_name:
    return code_number(n, code, code_statement(code, f->name)->value);
  case FORMULA_attribute:
    return attr_as_number(n, f->index);
  case FORMULA_call:
    return call(f->name, x);
  case FORMULA_minus:
    return -x;
  case FORMULA_mul:
    return x * y;
  case FORMULA_div:
    return x / y;
  case FORMULA_add:
    return x + y;
  case FORMULA_sub:
    return x - y;
  default:
    op_broken(op_of(n), "a formula has a number that is not", "+ - * /");
  }
}
