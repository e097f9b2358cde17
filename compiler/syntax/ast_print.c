/* Prints --emit=ast: the tree, one node a line, indented by depth: kind, text, line:column. A label
 * such as `value:` before a kind names the part of the parent node. */
#include "compiler/base/compile.h"
#include "ast_forms.h"
#include "common/shown.h"
#include <string.h>

typedef struct Printer {
  const Compile *c;
  Text *out;
  int depth;
} Printer;

static void print_node(Printer *pr, const char *label, const Form *form, Span span,
                       const void *node);

/* Begins a line. The text that is printed before end() is the text of the node. */
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
  text_puts(pr->out, " \"");
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

/* Prints a part that belongs on the node's own line. */
static void print_text(Printer *pr, const Part *part, const void *at)
{
  switch (part->kind) {
  case PART_word:
    if (*(const char *const *)at)
      text_printf(pr->out, " %s%s", part->label, *(const char *const *)at);
    break;
  case PART_integer:
    text_printf(pr->out, " %lld", (long long)*(const int64_t *)at);
    break;
  case PART_number:
    text_printf(pr->out, " %s", arena_number(pr->c->arena, *(const double *)at, 1));
    break;
  case PART_string:
    print_string(pr, ((const StringText *)at)->text, ((const StringText *)at)->size);
    break;
  case PART_operator:
    text_printf(pr->out, " %s%s", operator_text(*(const Operator *)at), part->label);
    break;
  case PART_names:
    if (*part->label) text_printf(pr->out, " %s", part->label);
    print_names(pr, at);
    break;
  default:
    break;
  }
}

/* ---- subtrees of a node, indented ---- */

static void print_expr(Printer *pr, const char *label, const Expr *e)
{
  if (e) print_node(pr, label, &expr_forms[e->kind], e->span, e);
}

static void print_exprs(Printer *pr, const char *label, const ExprList *list)
{
  for (uint32_t i = 0; i < list->n; i++) print_expr(pr, label, list->at[i]);
}

static void print_args(Printer *pr, const ArgList *args)
{
  for (uint32_t i = 0; i < args->n; i++) {
    const Arg *a = &args->at[i];
    print_expr(pr, a->key.text ? a->key.text : a->star ? "*" : "", a->value);
  }
}

static void print_subs(Printer *pr, const SubList *subs)
{
  for (const Sub *s = subs->at; s < subs->at + subs->n; s++) {
    if (s->kind == SUB_index) {
      print_expr(pr, "", s->index);
      continue;
    }
    begin(pr, "", s->kind == SUB_ellipsis ? "ellipsis" : "slice");
    end(pr, s->span);
    print_expr(pr, "start", s->start);
    print_expr(pr, "stop", s->stop);
    print_expr(pr, "step", s->step);
    pr->depth--;
  }
}

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

static void print_block(Printer *pr, const char *label, const Block *b)
{
  if (!b->span.end) return;
  begin(pr, label, "block");
  end(pr, b->span);
  for (uint32_t i = 0; i < b->n; i++)
    print_node(pr, "", &stmt_forms[b->at[i]->kind], b->at[i]->span, b->at[i]);
  pr->depth--;
}

static void print_function(Printer *pr, const Function *f)
{
  print_params(pr, "param", &f->params);
  for (uint32_t i = 0; i < f->n_results; i++) print_type(pr, "result", &f->results[i]);
  print_block(pr, "body", &f->body);
}

static void print_below(Printer *pr, const Part *part, const void *at)
{
  switch (part->kind) {
  case PART_expr:
    print_expr(pr, part->label, *(Expr *const *)at);
    break;
  case PART_exprs:
    print_exprs(pr, part->label, at);
    break;
  case PART_args:
    print_args(pr, at);
    break;
  case PART_subs:
    print_subs(pr, at);
    break;
  case PART_type:
    print_type(pr, part->label, at);
    break;
  case PART_params:
    print_params(pr, part->label, at);
    break;
  case PART_block:
    print_block(pr, part->label, at);
    break;
  case PART_function:
    print_function(pr, at);
    break;
  default:
    break;
  }
}

static void print_node(Printer *pr, const char *label, const Form *form, Span span,
                       const void *node)
{
  begin(pr, label, form->word);
  for (const Part *p = form->part; p->kind; p++) print_text(pr, p, part_of(node, p));
  end(pr, span);
  for (const Part *p = form->part; p->kind; p++) print_below(pr, p, part_of(node, p));
  pr->depth--;
}

void ast_print(const Compile *c, const Ast *ast, Text *out)
{
  Printer pr = {c, out, 0};
  for (uint32_t i = 0; i < ast->n; i++)
    print_node(&pr, "", &decl_forms[ast->at[i]->kind], ast->at[i]->span, ast->at[i]);
}
