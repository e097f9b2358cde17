/* --emit=ast: the tree as text, one node a line, indented by depth: kind, text, line:column. A
 * label such as `value:` before a kind says which part of the node above it is. */
#include "compiler/base/compile.h"
#include "ast.h"
#include "runtime/plan/shown.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Printer {
  const Compile *c;
  Text *out;
  int depth;
} Printer;

static void print_expr(Printer *pr, const char *label, const Expr *e);
static void print_block(Printer *pr, const char *label, const Block *b);

/* Begins a line; what is printed until end() is the text of the node. */
static void begin(Printer *pr, const char *label, const char *kind)
{
  text_printf(pr->out, "%*s%s%s%s", pr->depth * 2, "", label, *label ? ": " : "", kind);
}

static void end(Printer *pr, Span span)
{
  Place place = diag_place(pr->c, span);
  text_printf(pr->out, "  %u:%u\n", place.line, place.column);
  pr->depth++;
}

static void print_names(Printer *pr, const NameList *names)
{
  for (uint32_t i = 0; i < names->n; i++)
    text_printf(pr->out, "%s%s", i ? ", " : " ", names->at[i].text);
}

static void print_string(Printer *pr, const char *s, size_t n)
{
  text_puts(pr->out, "\"");
  for (size_t i = 0, size; i < n; i += size) {
    char escape[AMPC_ESCAPE_ROOM];
    size = ampc_character(s + i, n - i, escape);
    if (s[i] == '"' || s[i] == '\\')
      text_printf(pr->out, "\\%c", s[i]);
    else if (escape[0])
      text_puts(pr->out, escape);
    else
      text_add(pr->out, s + i, size);
  }
  text_puts(pr->out, "\"");
}

/* ---- expressions ---- */

static void print_args(Printer *pr, const ArgList *args)
{
  for (uint32_t i = 0; i < args->n; i++) {
    const Arg *a = &args->at[i];
    print_expr(pr, a->key.text ? a->key.text : a->star ? "*" : "", a->value);
  }
}

static void print_subs(Printer *pr, const Sub *subs, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    if (subs[i].kind == SUB_index) {
      print_expr(pr, "", subs[i].index);
      continue;
    }
    begin(pr, "", subs[i].kind == SUB_ellipsis ? "ellipsis" : "slice");
    end(pr, subs[i].span);
    print_expr(pr, "start", subs[i].start);
    print_expr(pr, "stop", subs[i].stop);
    print_expr(pr, "step", subs[i].step);
    pr->depth--;
  }
}

/* The word that the line of an expression begins with. */
static const char *expr_kind(ExprKind kind)
{
  static const char *const text[] = {
      [EXPR_name] = "name",     [EXPR_type] = "type",     [EXPR_int] = "int",
      [EXPR_float] = "float",   [EXPR_string] = "string", [EXPR_true] = "true",
      [EXPR_false] = "false",   [EXPR_none] = "none",     [EXPR_list] = "list",
      [EXPR_tuple] = "tuple",   [EXPR_comp] = "comp",     [EXPR_call] = "call",
      [EXPR_index] = "index",   [EXPR_attr] = "attr",     [EXPR_unary] = "unary",
      [EXPR_binary] = "binary", [EXPR_cond] = "cond"};
  return text[kind];
}

/* With as few digits as give the same number back. */
static void print_number(Printer *pr, double number)
{
  char text[32];
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, number);
    if (strtod(text, NULL) == number) break;
  }
  text_printf(pr->out, " %s", text);
}

/* What stands on the expression's own line; its parts follow below, indented. */
static void print_expr_text(Printer *pr, const Expr *e)
{
  switch (e->kind) {
  case EXPR_name:
  case EXPR_type:
    text_printf(pr->out, " %s", e->as.name);
    break;
  case EXPR_int:
    text_printf(pr->out, " %lld", (long long)e->as.integer);
    break;
  case EXPR_float:
    print_number(pr, e->as.number);
    break;
  case EXPR_string:
    text_puts(pr->out, " ");
    print_string(pr, e->as.string.text, e->as.string.size);
    break;
  case EXPR_attr:
    text_printf(pr->out, " .%s", e->as.attr.name.text);
    break;
  case EXPR_unary:
    text_printf(pr->out, " %s", operator_text(e->as.unary.op));
    break;
  case EXPR_binary:
    text_printf(pr->out, " %s", operator_text(e->as.binary.op));
    break;
  case EXPR_comp:
    print_names(pr, &e->as.comp.names);
    break;
  default:
    break;
  }
}

/* Operands, each with what it is to the expression. */
static void print_expr_parts(Printer *pr, const Expr *e)
{
  switch (e->kind) {
  case EXPR_list:
  case EXPR_tuple:
    print_args(pr, &e->as.args);
    break;
  case EXPR_comp:
    print_expr(pr, "value", e->as.comp.value);
    print_expr(pr, "in", e->as.comp.iter);
    print_expr(pr, "if", e->as.comp.cond);
    break;
  case EXPR_call:
    print_expr(pr, "callee", e->as.call.callee);
    print_args(pr, &e->as.call.args);
    break;
  case EXPR_index:
    print_expr(pr, "base", e->as.index.base);
    print_subs(pr, e->as.index.subs, e->as.index.n);
    break;
  case EXPR_attr:
    print_expr(pr, "", e->as.attr.base);
    break;
  case EXPR_unary:
    print_expr(pr, "", e->as.unary.operand);
    break;
  case EXPR_binary:
    print_expr(pr, "", e->as.binary.left);
    print_expr(pr, "", e->as.binary.right);
    break;
  case EXPR_cond:
    print_expr(pr, "then", e->as.cond.then);
    print_expr(pr, "test", e->as.cond.test);
    print_expr(pr, "else", e->as.cond.other);
    break;
  default:
    break;
  }
}

static void print_expr(Printer *pr, const char *label, const Expr *e)
{
  if (!e) return;
  begin(pr, label, expr_kind(e->kind));
  print_expr_text(pr, e);
  end(pr, e->span);
  print_expr_parts(pr, e);
  pr->depth--;
}

static void print_exprs(Printer *pr, const char *label, const ExprList *list)
{
  for (uint32_t i = 0; i < list->n; i++) print_expr(pr, label, list->at[i]);
}

/* ---- signatures ---- */

static void print_type(Printer *pr, const char *label, const TypeExpr *t)
{
  if (!t->name) return;
  begin(pr, label, t->tensor ? "tensor" : "type");
  text_printf(pr->out, " %s", t->name);
  end(pr, t->span);
  for (uint32_t i = 0; i < t->n_dims; i++) {
    if (t->dims[i])
      print_expr(pr, "", t->dims[i]);
    else
      text_printf(pr->out, "%*s...\n", pr->depth * 2, "");
  }
  pr->depth--;
}

static void print_params(Printer *pr, const char *label, const ParamList *params)
{
  for (uint32_t i = 0; i < params->n; i++) {
    const Param *p = &params->at[i];
    begin(pr, "", label);
    text_printf(pr->out, " %s", p->name.text);
    end(pr, p->name.span);
    print_type(pr, "type", &p->type);
    print_expr(pr, "default", p->value);
    pr->depth--;
  }
}

static void print_function(Printer *pr, const Function *f)
{
  print_params(pr, "param", &f->params);
  for (uint32_t i = 0; i < f->n_results; i++) print_type(pr, "result", &f->results[i]);
  print_block(pr, "body", &f->body);
}

/* ---- statements ---- */

static const char *stmt_kind(StmtKind kind)
{
  static const char *const text[] = {
      [STMT_expr] = "expr",         [STMT_assign] = "assign",   [STMT_augment] = "augment",
      [STMT_return] = "return",     [STMT_assert] = "assert",   [STMT_if] = "if",
      [STMT_for] = "for",           [STMT_scan] = "scan",       [STMT_emit] = "emit",
      [STMT_autocast] = "autocast", [STMT_no_grad] = "no_grad", [STMT_every] = "every",
      [STMT_minimize] = "minimize", [STMT_metric] = "metric",   [STMT_def] = "def"};
  return text[kind];
}

/* As print_expr_text() for statements. */
static void print_stmt_text(Printer *pr, const Stmt *s)
{
  switch (s->kind) {
  case STMT_augment:
    text_printf(pr->out, " %s=", operator_text(s->as.augment.op));
    break;
  case STMT_for:
    print_names(pr, &s->as.loop.names);
    break;
  case STMT_scan:
    text_printf(pr->out, " %s carry", s->as.scan.name.text);
    print_names(pr, &s->as.scan.carry);
    break;
  case STMT_emit:
  case STMT_metric:
    text_printf(pr->out, " %s", s->as.named.name.text);
    break;
  case STMT_minimize:
    text_puts(pr->out, " with");
    print_names(pr, &s->as.minimize.optimizers);
    break;
  case STMT_def:
    text_printf(pr->out, " %s", s->as.def.name.text);
    break;
  default:
    break;
  }
}

static void print_stmt_parts(Printer *pr, const Stmt *s)
{
  switch (s->kind) {
  case STMT_expr:
    print_expr(pr, "", s->as.value);
    break;
  case STMT_assign:
    print_exprs(pr, "target", &s->as.assign.targets);
    print_exprs(pr, "value", &s->as.assign.values);
    break;
  case STMT_augment:
    print_expr(pr, "target", s->as.augment.target);
    print_expr(pr, "value", s->as.augment.value);
    break;
  case STMT_return:
  case STMT_assert:
    print_exprs(pr, "", &s->as.exprs);
    break;
  case STMT_if:
    print_expr(pr, "test", s->as.branch.test);
    print_block(pr, "then", &s->as.branch.then);
    if (s->as.branch.other.span.end) print_block(pr, "else", &s->as.branch.other);
    break;
  case STMT_for:
    print_expr(pr, "in", s->as.loop.iter);
    print_block(pr, "body", &s->as.loop.body);
    break;
  case STMT_scan:
    print_expr(pr, "in", s->as.scan.iter);
    print_block(pr, "body", &s->as.scan.body);
    break;
  case STMT_emit:
  case STMT_metric:
    print_expr(pr, "", s->as.named.value);
    break;
  case STMT_autocast:
  case STMT_no_grad:
    print_args(pr, &s->as.region.args);
    if (s->as.region.has_block) print_block(pr, "body", &s->as.region.body);
    break;
  case STMT_every:
    print_expr(pr, "interval", s->as.every.interval);
    print_block(pr, "body", &s->as.every.body);
    break;
  case STMT_minimize:
    print_expr(pr, "", s->as.minimize.loss);
    break;
  case STMT_def:
    print_function(pr, &s->as.def);
    break;
  }
}

static void print_block(Printer *pr, const char *label, const Block *b)
{
  begin(pr, label, "block");
  end(pr, b->span);
  for (uint32_t i = 0; i < b->n; i++) {
    const Stmt *s = b->at[i];
    begin(pr, "", stmt_kind(s->kind));
    print_stmt_text(pr, s);
    end(pr, s->span);
    print_stmt_parts(pr, s);
    pr->depth--;
  }
  pr->depth--;
}

/* ---- declarations ---- */

static const char *decl_kind(DeclKind kind)
{
  static const char *const text[] = {[DECL_import] = "import",
                                     [DECL_const] = "const",
                                     [DECL_dim] = "dim",
                                     [DECL_def] = "def",
                                     [DECL_module] = "module",
                                     [DECL_op] = "op",
                                     [DECL_data] = "data",
                                     [DECL_model] = "model",
                                     [DECL_optimizer] = "optimizer",
                                     [DECL_precision] = "precision",
                                     [DECL_train] = "train",
                                     [DECL_eval] = "eval",
                                     [DECL_infer] = "infer",
                                     [DECL_expr] = "expr",
                                     [DECL_body] = "body"};
  return text[kind];
}

/* As print_expr_text() for declarations. */
static void print_decl_text(Printer *pr, const Decl *d)
{
  const char *name = NULL;
  switch (d->kind) {
  case DECL_import:
    text_puts(pr->out, " ");
    print_string(pr, d->as.import.path, strlen(d->as.import.path));
    break;
  case DECL_const:
    name = d->as.constant.name.text;
    break;
  case DECL_dim:
    name = d->as.dim.name.text;
    break;
  case DECL_def:
  case DECL_data:
  case DECL_infer:
  case DECL_body:
    name = d->as.function.name.text;
    break;
  case DECL_module:
    name = d->as.module.name.text;
    break;
  case DECL_op:
    name = d->as.op.name.text;
    break;
  case DECL_model:
  case DECL_optimizer:
  case DECL_precision:
    name = d->as.object.name.text;
    break;
  case DECL_train:
  case DECL_eval:
    print_names(pr, &d->as.run.names);
    break;
  case DECL_expr:
    break;
  }
  if (name) text_printf(pr->out, " %s", name);
}

static void print_decl_parts(Printer *pr, const Decl *d)
{
  switch (d->kind) {
  case DECL_import:
    break;
  case DECL_const:
    print_type(pr, "type", &d->as.constant.type);
    print_expr(pr, "", d->as.constant.value);
    break;
  case DECL_dim:
    print_args(pr, &d->as.dim.args);
    break;
  case DECL_def:
  case DECL_data:
  case DECL_infer:
  case DECL_body:
    print_function(pr, &d->as.function);
    break;
  case DECL_module:
    print_params(pr, "param", &d->as.module.params);
    print_block(pr, "body", &d->as.module.body);
    break;
  case DECL_op:
    print_params(pr, "param", &d->as.op.params);
    print_params(pr, "output", &d->as.op.outputs);
    print_block(pr, "body", &d->as.op.body);
    break;
  case DECL_model:
  case DECL_optimizer:
  case DECL_precision:
    print_expr(pr, "", d->as.object.value);
    if (d->as.object.clauses.span.end) print_block(pr, "clauses", &d->as.object.clauses);
    break;
  case DECL_train:
  case DECL_eval:
    print_expr(pr, "in", d->as.run.source);
    print_args(pr, &d->as.run.with);
    print_block(pr, "body", &d->as.run.body);
    break;
  case DECL_expr:
    print_expr(pr, "", d->as.value);
    break;
  }
}

void ast_print(const Compile *c, const Ast *ast, Text *out)
{
  Printer pr = {c, out, 0};
  for (uint32_t i = 0; i < ast->n; i++) {
    const Decl *d = ast->at[i];
    begin(&pr, "", decl_kind(d->kind));
    print_decl_text(&pr, d);
    end(&pr, d->span);
    print_decl_parts(&pr, d);
    pr.depth--;
  }
}
