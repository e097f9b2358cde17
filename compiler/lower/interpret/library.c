/* Checks the layer library against the tables. An optimizer or a schedule is a def that ends with
 *
 *   return _optimizer("SGD", model, clip_norm, accumulate, lr=lr, ...)
 *   return _schedule("linear", [start, ...])
 *
 * A mistake in the library is a bug in ampc, so the first compile aborts the program, even if the
 * job does not use the name. */
#include "interpret.h"
#include <stdio.h>
#include <stdlib.h>

static _Noreturn void def_broken(const Function *def, const char *what, const char *word)
{
  fprintf(stderr, "ampc: compiler/layers: def %s: %s `%s`\n", def->name.text, what, word);
  abort();
}

/* Returns the arguments if the def ends with a call of `native`; else NULL. */
static const ArgList *final_call(const Function *def, const char *native)
{
  const Stmt *last = def->body.n ? def->body.at[def->body.n - 1] : NULL;
  if (!last || last->kind != STMT_return || last->as.exprs.n != 1) return NULL;
  const Expr *e = last->as.exprs.at[0];
  return strcmp(called_name(e), native) == 0 ? &e->as.call.args : NULL;
}

/* Returns the first argument, which is the name of a row of the table. */
static const char *row_name(const Function *def, const ArgList *args)
{
  const Expr *e = args->n ? args->at[0].value : NULL;
  if (!e || e->kind != EXPR_string) def_broken(def, "the name of a row must be", "a string");
  return e->as.string.text;
}

/* ---- optimizers ---- */

static const OptimizerArgument *argument_named(const OptimizerInfo *row, const char *name)
{
  for (uint32_t i = 0; i < row->n_arguments; i++)
    if (strcmp(row->argument[i].name, name) == 0) return &row->argument[i];
  return NULL;
}

static bool has_key(const ArgList *args, const char *name)
{
  for (uint32_t i = 0; i < args->n; i++)
    if (args->at[i].key.text && strcmp(args->at[i].key.text, name) == 0) return true;
  return false;
}

/* The def must pass every argument of the row by name, and no other arguments. */
static void check_optimizer(const Function *def, const ArgList *args, bool *found)
{
  OptimizerKind kind;
  const char *name = row_name(def, args);
  if (strcmp(name, def->name.text) != 0) def_broken(def, "it has the name of another:", name);
  if (!optimizer_lookup(name, &kind)) def_broken(def, "optimizers.def has no row", name);
  const OptimizerInfo *row = optimizer_row(kind);
  for (uint32_t i = 0; i < args->n; i++) {
    const char *key = args->at[i].key.text;
    if (key && !argument_named(row, key))
      def_broken(def, "neither an input of the update nor a flag:", key);
  }
  for (uint32_t i = 0; i < row->n_arguments; i++)
    if (!has_key(args, row->argument[i].name))
      def_broken(def, "it does not hand on", row->argument[i].name);
  found[kind] = true;
}

/* ---- schedules ---- */

/* The def must pass a value for each input after `step`, or a list for the last one. */
static void check_schedule(Lower *l, const Function *def, const ArgList *args)
{
  const char *name = arena_printf(l->arena, "schedule_%s", row_name(def, args));
  const OpSignature *sig = &op_row(op_named(name))->signature;
  const Expr *values = args->n > 1 ? args->at[1].value : NULL;
  if (!values || values->kind != EXPR_list || values->as.args.n + args->n - 1 != sig->n_inputs)
    def_broken(def, "its list does not have the inputs of the op", name);
  ampc_domain domain;
  for (uint32_t i = 1; i < sig->n_inputs; i++)
    if (!setting_domain(sig->input[i].name, AMPC_FINITE, &domain))
      def_broken(def, "settings.def has no row", sig->input[i].name);
}

/* ---- both ---- */

void check_library(Lower *l)
{
  bool found[OPT_COUNT] = {false};
  for (uint32_t i = 0; i < l->library->ast->n; i++) {
    const Decl *d = l->library->ast->at[i];
    if (d->kind != DECL_def) continue;
    const Function *def = &d->as.function;
    const ArgList *optimizer = final_call(def, "_optimizer"),
                  *schedule = final_call(def, "_schedule");
    if (optimizer) check_optimizer(def, optimizer, found);
    if (schedule) check_schedule(l, def, schedule);
  }
  for (OptimizerKind k = 0; k < OPT_COUNT; k++)
    if (!found[k])
      optimizer_broken(optimizer_row(k)->name,
                       "compiler/layers/optimizers.amp has no def of it that ends in",
                       "return _optimizer(...)");
}
