/* The running program: its kernels, its runtime, and the change to the next program. */
#include "repl.h"
#include "compiler/command/command.h"
#include "common/number.h"
#include "runtime/state/saved.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Applies the values of :set again, as far as the program has these settings. */
static ampc_status apply_sets(const Repl *r, ampc_runtime *rt)
{
  const ampc_program *p = ampc_program_of(rt);
  ampc_status status = AMPC_OK;
  uint32_t k;
  for (uint32_t i = 0; i < r->sets.n; i++) {
    const Assignment *set = &r->sets.at[i];
    if (!status && setting_index(p, set->key, &k))
      status = ampc_set(rt, set->key, number_of(set->value));
  }
  return status;
}

static bool same_text(const char *a, const char *b)
{
  return strcmp(a, b) == 0;
}

/* Whether two programs load the same files in the same way. */
static bool same_loads(const ampc_program *a, const ampc_program *b)
{
  bool same = a->n_loads == b->n_loads;
  for (uint32_t i = 0; i < a->n_loads && same; i++) {
    const ampc_load *x = &a->loads[i], *y = &b->loads[i];
    uint32_t n = 2 * x->n_rename + x->n_transpose + x->n_missing + x->n_unused;
    same = same_text(x->path, y->path) && same_text(x->prefix, y->prefix) &&
           same_text(x->model, y->model) && same_text(x->strip, y->strip) &&
           x->n_rename == y->n_rename && x->n_transpose == y->n_transpose &&
           x->n_missing == y->n_missing && x->n_unused == y->n_unused;
    for (uint32_t k = 0; k < n && same; k++) same = same_text(x->patterns[k], y->patterns[k]);
  }
  return same;
}

static void tell_loaded(void *to, bool warning, const char *line)
{
  (void)to;
  printf("%s%s\n", warning ? "warning: " : "", line);
}

/* True if the old program stores all weights of the new one that each run reads from files in the
 * same way. Others cannot be carried: their values may have been rounded. */
static bool same_given(const ampc_program *old, const ampc_program *new)
{
  bool same = true;
  for (uint32_t i = 0; i < new->n_params; i++) {
    const ampc_param *a = &new->params[i], *b = NULL;
    for (uint32_t k = 0; k < old->n_params && a->given && !b; k++)
      if (strcmp(old->params[k].path, a->path) == 0) b = &old->params[k];
    if (b)
      same = same && a->buffer == b->buffer && a->dtype == b->dtype && a->packing == b->packing;
  }
  return same;
}

/* Reads the files of `load` clauses when the session begins, and again if the clauses change. If
 * only the storage of frozen weights changes, reads these again. */
static ampc_status load_files(const Repl *r, ampc_runtime *rt)
{
  const ampc_program *old = r->rt ? ampc_program_of(r->rt) : NULL, *new = ampc_program_of(rt);
  if (!old || !same_loads(old, new)) return ampc_load_params(rt, r->data_dir, tell_loaded, NULL);
  return same_given(old, new) ? AMPC_OK : ampc_load_given(rt, r->data_dir, tell_loaded, NULL);
}

/* Makes the runtime of a program. All parameters first get initial values, and :set is applied.
 * Then the state of the running program is copied: a plateau may have lowered a setting since. *out
 * is NULL after a failure. */
static ampc_status make_runtime(const Repl *r, Compiled *p, const ampc_program *as,
                                ampc_runtime **out, uint32_t *out_kept)
{
  *out = NULL;
  *out_kept = 0;
  if (!as) as = p->c->program;
  ampc_status status = ampc_create(as, r->device, out);
  if (!status) status = ampc_init_params(*out, r->seed_given ? r->seed : as->seed);
  if (!status) status = apply_sets(r, *out);
  if (!status && r->rt) status = state_carry(r->rt, *out, out_kept);
  if (!status) status = load_files(r, *out);
  if (status) {
    ampc_free(*out);
    *out = NULL;
  }
  return status;
}

/* Loads kernels. Those for a GPU are not kept one by one, but cached in units, as for `amp
 * train`. */
static ampc_status load(const Repl *r, Compiled *p)
{
  if (!is_cpu_target(p->c)) return p->jit ? AMPC_OK : jit_load(p->c, &p->jit);
  return kernels_load(r->kernels, p->c, r->live ? r->live->c->program : NULL);
}

ampc_status live_twin(Repl *r, Compiled *p, const ampc_program *as, ampc_runtime **out)
{
  uint32_t kept;
  *out = NULL;
  ampc_status status = as ? AMPC_OK : load(r, p); /* `as` has the kernels already */
  return status ? status : make_runtime(r, p, as, out, &kept);
}

/* Runs the next batch on a twin. The session does not advance, so training reads the batch again.
 */
ampc_status live_try_batch(Repl *r, ampc_runtime *twin, uint32_t block, int64_t *out_samples)
{
  Run run;
  ampc_status status = feed_run(r, r->rt, &run);
  if (!status) status = run_find(&run);
  ampc_batches *from = status ? NULL : run.batches[run.position.block];
  if (!status) status = ampc_data.seek(from, run.position);
  if (!status) status = ampc_run_batch(twin, &ampc_data, from, block, 0, out_samples);
  run_close(&run);
  return status ? status : ampc_wait(twin);
}

static void tell_kept(const ampc_program *p, uint32_t kept)
{
  if (kept < p->n_params)
    printf(
        "kept %u of %u parameters and buffers; the others get initial values or those of `load`\n",
        kept, p->n_params);
}

/* Makes the latest program run. The new runtime is complete before the old one is freed, so after a
 * failure the session keeps its program. */
bool live_ready(Repl *r)
{
  Compiled *p = program_latest(r);
  if (!p) return false;
  if (p == r->live) return true;
  ampc_runtime *rt;
  uint32_t kept;
  if (!repl_check(r, load(r, p)) || !repl_check(r, make_runtime(r, p, NULL, &rt, &kept)))
    return false;
  kernels_check_edits(r->kernels, p->c);
  feeds_move(r, p);
  if (r->rt) tell_kept(p->c->program, kept);
  ampc_free(r->rt);
  compiled_drop(r->live);
  r->rt = rt;
  r->live = compiled_keep(p);
  return true;
}

void live_close(Repl *r)
{
  feeds_close(r);
  ampc_free(r->rt);
  compiled_drop(r->live);
  r->rt = NULL;
  r->live = NULL;
  r->steps = 0;
  r->position = (ampc_data_position){0};
  r->per_epoch = 0;
  r->losses.n = 0;
}
