/* Pass lower: elaborates the program. It needs the tree of the job and returns the graph with all
 * shapes known. It is the first pass, since all other passes work on the graph.
 *
 * A declaration is evaluated where it is first used, so declarations may be in any order. Models
 * are evaluated before optimizers, and both before the blocks that run. */
#include "interpret.h"
#include "compiler/lower/meaning.h"
#include "compiler/lower/block/block.h"
#include "compiler/lower/block/infer.h"
#include "compiler/lower/model/model.h"
#include "compiler/lower/optimizer/optimizer.h"
#include "compiler/lower/optimizer/plateau.h"
#include "compiler/passes/passes.h"
#include "compiler/syntax/source.h"
#include "compiler/graph/shares.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opens the imports of `f`, recursively. Only the declarations of an imported file are used; its
 * models, optimizers and blocks are skipped. Returns false after a message if a file cannot be
 * read. */
static bool open_imports(Lower *l, File *f)
{
  for (uint32_t i = 0; i < f->ast->n; i++) {
    const Decl *d = f->ast->at[i];
    if (d->kind != DECL_import) continue;
    uint32_t known = l->files.n;
    const Ast *ast = source_import(l->c, d->as.path.text, d->span);
    if (!ast) return false;
    File *import = file_open(l, ast, false);
    vec_push(l->arena, &f->imports, import);
    if (l->files.n == known) continue;
    file_add_globals(l, import, false);
    if (!open_imports(l, import)) return false;
  }
  return true;
}

/* Evaluates all declarations of one kind. Some have already been evaluated, at their first use. */
static void evaluate(Lower *l, DeclKind kind)
{
  for (uint32_t i = 0; i < l->job->globals.n; i++)
    if (l->job->globals.at[i].decl->kind == kind) global_value(l, l->job, &l->job->globals.at[i]);
}

/* Runs the calls at the top level of the file once, such as `manual_seed(1)`. */
static void run_calls(Lower *l)
{
  for (uint32_t i = 0; i < l->job->ast->n; i++) {
    const Decl *d = l->job->ast->at[i];
    if (d->kind == DECL_expr) eval(l, scope_new(l, NULL, l->job, NULL), d->as.value);
  }
}

/* Reads `precision`, which determines the outermost region, before models and blocks. */
static void find_precision(Lower *l)
{
  const Decl *found = NULL;
  for (uint32_t i = 0; i < l->job->ast->n; i++) {
    const Decl *d = l->job->ast->at[i];
    if (d->kind != DECL_precision) continue;
    if (found) {
      fail(l, E210, d->span, "a job has one `precision`");
      diag_note(l->c, found->span, "the first one is here");
    } else {
      found = d;
    }
  }
  lower_precision(l, precision_profile(l, found));
}

/* Elaborates blocks in the order of the file. The second train block is named "train2" unless its
 * `with` names it. */
static void run_blocks(Lower *l)
{
  uint32_t trains = 0, evals = 0;
  for (uint32_t i = 0; i < l->job->ast->n; i++) {
    const Decl *d = l->job->ast->at[i];
    const char *one = l->c->options.infer_block;
    if (l->sizes->sizing != SIZING_asked && d->kind != DECL_infer) continue;
    if (one && (d->kind != DECL_infer || strcmp(d->name.text, one) != 0)) continue;
    if (d->kind == DECL_train) lower_run(l, d, ++trains);
    if (d->kind == DECL_eval) lower_run(l, d, ++evals);
    if (d->kind == DECL_infer) lower_infer(l, d);
    if (d->kind == DECL_body) lower_body(l, d);
  }
  lower_check_names(l);
}

/* Elaborates the job once, into a new graph. The order matters for three reasons. Consts come
 * first, since -D replaces them. After a mistake in a const or a model, any module may lack
 * members; so `broken` suppresses messages about missing members. Settings of optimizers that no
 * `minimize` uses are evaluated last, so that their mistakes are reported. */
static void elaborate_job(Compile *c, Sizes *sizes)
{
  Lower state = {.c = c, .g = ir_create(c), .arena = c->arena, .store = AMPC_F32, .sizes = sizes},
        *l = &state;
  bool all = sizes->sizing == SIZING_asked && !c->options.infer_block;
  if (c->options.keep_meanings && sizes->sizing == SIZING_asked && !sizes->twin)
    l->meanings = c->meanings = arena_new(c->arena, struct Meanings);
  open_library(l);
  l->job = file_open(l, c->ast, false);
  file_add_globals(l, l->job, true);
  if (!open_imports(l, l->job)) return; /* all names of the import are unknown */
  l->misread = diag_error_count(c) != 0;
  check_consts(l);
  check_dims(l);
  if (c->options.decode) decoder_check_name(l);
  evaluate(l, DECL_const);
  l->broken = l->broken_consts = diag_error_count(c) != 0;
  evaluate(l, DECL_dim);
  evaluate(l, DECL_op);
  run_calls(l);
  find_precision(l);
  evaluate(l, DECL_model);
  job_pins(l);
  prefix_paths(l);
  lower_members(l);
  if (all) evaluate(l, DECL_optimizer); /* without training no settings are needed */
  run_blocks(l);
  if (sizes->again || sizes->sizing != SIZING_asked) return;
  for (uint32_t i = 0; i < l->optimizers.n; i++) optimizer_settle(l, l->optimizers.at[i]);
  check_averages_kept(l);
  if (!diag_error_count(c)) warn_left_out(l), drop_unreached(l);
  shares_settle(c);
  if (!l->stopped) plateaus_settle(l);
  if (!l->stopped) check_settings(l);
  if (diag_error_count(c)) return;
  check_overlap(l);
  check_measured(l);
}

/* Note [dims]: elaborates the job again with the sizes of the data. To find mistakes, it also
 * elaborates dims at their minimum and maximum, if these are not the sizes to compile. Note
 * [samples] in passes/members.c: with members, elaborates the job for the whole batch, too. */
bool pass_lower(Compile *c)
{
  Sizes sizes = {.sizing = SIZING_asked};
  elaborate_job(c, &sizes);
  if (sizes.again && !diag_error_count(c)) {
    sizes.again = false;
    elaborate_job(c, &sizes);
  }
  Graph *graph = c->graph;
  uint32_t missed = diag_error_count(c) || c->options.infer_block ? 0 : sizes.ends_missed;
  if (missed & 1) elaborate_job(c, &(Sizes){.sizing = SIZING_least});
  if (missed & 2) elaborate_job(c, &(Sizes){.sizing = SIZING_most});
  if (graph->members > 1 && !diag_error_count(c)) {
    elaborate_job(c, &(Sizes){.sizing = SIZING_asked, .twin = true});
    c->twin = c->graph;
  }
  c->graph = graph;
  return diag_error_count(c) == 0;
}
