#include "ast_forms.h"

#define P(kind, label, member)                                                                     \
  {                                                                                                \
    PART_##kind, label, offsetof(NODE, as.member)                                                  \
  }

#define NODE Expr
const Form expr_forms[] = {
    [EXPR_name] = {"name", {P(word, "", name)}},
    [EXPR_type] = {"type", {P(word, "", name)}},
    [EXPR_int] = {"int", {P(integer, "", integer)}},
    [EXPR_float] = {"float", {P(number, "", number)}},
    [EXPR_string] = {"string", {P(string, "", string)}},
    [EXPR_true] = {"true", {{0}}},
    [EXPR_false] = {"false", {{0}}},
    [EXPR_none] = {"none", {{0}}},
    [EXPR_list] = {"list", {P(args, "", args)}},
    [EXPR_tuple] = {"tuple", {P(args, "", args)}},
    [EXPR_comp] = {"comp",
                   {P(names, "", comp.names), P(expr, "value", comp.value),
                    P(expr, "in", comp.iter), P(expr, "if", comp.cond)}},
    [EXPR_call] = {"call", {P(expr, "callee", call.callee), P(args, "", call.args)}},
    [EXPR_index] = {"index", {P(expr, "base", index.base), P(subs, "", index.subs)}},
    [EXPR_attr] = {"attr", {P(word, ".", attr.name), P(expr, "", attr.base)}},
    [EXPR_unary] = {"unary", {P(operator, "", unary.op), P(expr, "", unary.operand)}},
    [EXPR_binary] = {"binary",
                     {P(operator, "", binary.op), P(expr, "", binary.left),
                      P(expr, "", binary.right)}},
    [EXPR_cond] = {"cond",
                   {P(expr, "then", cond.then), P(expr, "test", cond.test),
                    P(expr, "else", cond.other)}},
};
#undef NODE

#define NODE Stmt
const Form stmt_forms[] = {
    [STMT_expr] = {"expr", {P(expr, "", value)}},
    [STMT_assign] = {"assign",
                     {P(exprs, "target", assign.targets), P(exprs, "value", assign.values)}},
    [STMT_augment] = {"augment",
                      {P(operator, "=", augment.op), P(expr, "target", augment.target),
                       P(expr, "value", augment.value)}},
    [STMT_return] = {"return", {P(exprs, "", exprs)}},
    [STMT_assert] = {"assert", {P(exprs, "", exprs)}},
    [STMT_if] = {"if",
                 {P(expr, "test", branch.test), P(block, "then", branch.then),
                  P(block, "else", branch.other)}},
    [STMT_for] = {"for",
                  {P(names, "", loop.names), P(expr, "in", loop.iter),
                   P(block, "body", loop.body)}},
    [STMT_scan] = {"scan",
                   {P(word, "", scan.name), P(names, "carry", scan.carry), P(expr, "in", scan.iter),
                    P(block, "body", scan.body)}},
    [STMT_emit] = {"emit", {P(word, "", named.name), P(expr, "", named.value)}},
    [STMT_autocast] = {"autocast", {P(args, "", region.args), P(block, "body", region.body)}},
    [STMT_no_grad] = {"no_grad", {P(block, "body", region.body)}},
    [STMT_every] = {"every", {P(expr, "interval", every.interval), P(block, "body", every.body)}},
    [STMT_minimize] = {"minimize",
                       {P(names, "with", minimize.optimizers), P(expr, "", minimize.loss)}},
    [STMT_metric] = {"metric",
                     {P(word, "", named.name), P(expr, "", named.value), P(args, "", named.with)}},
    [STMT_def] = {"def", {P(word, "", def.name), P(function, "", def)}},
};
#undef NODE

#define NODE Decl
#define NAME                                                                                       \
  {                                                                                                \
    PART_word, "", offsetof(Decl, name)                                                            \
  }
const Form decl_forms[] = {
    [DECL_import] = {"import", {P(string, "", path)}},
    [DECL_const] = {"const", {NAME, P(type, "type", constant.type), P(expr, "", constant.value)}},
    [DECL_dim] = {"dim", {NAME, P(args, "", args)}},
    [DECL_def] = {"def", {NAME, P(function, "", function)}},
    [DECL_module] = {"module",
                     {NAME, P(params, "param", module.params), P(block, "body", module.body)}},
    [DECL_op] = {"op",
                 {NAME, P(params, "param", op.params), P(params, "output", op.outputs),
                  P(block, "body", op.body)}},
    [DECL_data] = {"data", {NAME, P(function, "", function)}},
    [DECL_model] = {"model",
                    {NAME, P(expr, "", object.value), P(block, "clauses", object.clauses)}},
    [DECL_optimizer] = {"optimizer",
                        {NAME, P(expr, "", object.value), P(block, "clauses", object.clauses)}},
    [DECL_precision] = {"precision",
                        {P(expr, "", object.value), P(block, "clauses", object.clauses)}},
    [DECL_train] = {"train",
                    {P(names, "", run.names), P(expr, "in", run.source), P(args, "", run.with),
                     P(block, "body", run.body)}},
    [DECL_eval] = {"eval",
                   {P(names, "", run.names), P(expr, "in", run.source), P(args, "", run.with),
                    P(block, "body", run.body)}},
    [DECL_infer] = {"infer", {NAME, P(function, "", function)}},
    [DECL_setting] = {"setting", {NAME, P(expr, "", value)}},
    [DECL_expr] = {"expr", {P(expr, "", value)}},
    [DECL_body] = {"body", {NAME, P(function, "", function)}},
};
