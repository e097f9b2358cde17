/* Commands for the job and its state. */
#include "commands.h"
#include "runner/job/options.h"
#include "runner/job/plot.h"
#include "runtime/runtime.h"
#include "common/number.h"
#include "runtime/plan/types.h"
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether a path matches a shell pattern: "fc*.weight". */
bool path_matches(const char *pattern, const char *path)
{
  return !*pattern || fnmatch(pattern, path, 0) == 0;
}

/* ---- files ---- */

/* Runs :open. A new job starts without the weights, inputs and settings of the previous one. */
bool command_open(Repl *r, const char *arg)
{
  if (!*arg) return repl_error(r, ":open needs a file");
  Options before = r->options;
  r->options.input = arena_strdup(r->arena, arg);
  program_as_given(r);
  if (!program_open(r, r->options.input, false)) {
    r->options = before;
    return false;
  }
  live_close(r);
  r->job = r->options.input;
  r->data_dir = r->options.data_dir ? r->options.data_dir : folder_of(r->arena, r->job);
  r->said.n = r->sets.n = 0;
  return r->latest != NULL;
}

/* Runs :reload. Weights with the same path and shape stay, and typed declarations, which still
 * replace those of the file with the same name. :reload! drops them. */
bool command_reload(Repl *r, const char *arg)
{
  bool drop = strcmp(arg, "!") == 0;
  if (*arg && !drop) return repl_error(r, ":reload takes no argument, got %s", arg);
  if (!r->job) return repl_error(r, "there is no job to read again; :open FILE");
  uint32_t typed = r->declared.n;
  if (!program_open(r, r->job, !drop)) return false;
  if (typed && drop) printf("%u typed declaration%s dropped\n", typed, typed == 1 ? "" : "s");
  for (uint32_t i = 0; i < r->declared.n; i++)
    printf("stays: %s\n", input_shown(r, &r->declared.at[i]));
  if (r->declared.n) puts(":reload! drops typed declarations");
  return r->latest != NULL;
}

bool command_save(Repl *r, const char *arg)
{
  if (!*arg) return repl_error(r, ":save needs a file");
  if (!live_ready(r) || !repl_check(r, ampc_checkpoint_save(r->rt, arg, r->position))) return false;
  printf("saved %s at step %lld\n", arg, (long long)r->steps);
  return true;
}

/* Loads a checkpoint; clears the curve of the loss, because the checkpoint is of another run. */
bool state_load(Repl *r, const char *path)
{
  ampc_data_position at;
  ampc_state state;
  if (!live_ready(r) || !repl_check(r, ampc_checkpoint_load(r->rt, path, &at)) ||
      !repl_check(r, ampc_get_state(r->rt, &state)))
    return false;
  feeds_move(r, r->live);
  r->position = at;
  r->per_epoch = 0;
  r->steps = state.step;
  r->losses.n = 0;
  printf("loaded %s: step %lld\n", path, (long long)r->steps);
  return true;
}

bool command_load(Repl *r, const char *arg)
{
  return *arg ? state_load(r, arg) : repl_error(r, ":load needs a file");
}

/* ---- lists ---- */

/* Returns the parameter's optimizers: "opt", or "opt_a, opt_b". */
static const char *optimizers_text(Arena *arena, const ampc_program *p, const ampc_param *q)
{
  Text t = text_new(arena);
  if (q->packing) text_printf(&t, "%s, ", ampc_packing_name(q->packing));
  text_puts(&t, q->fixed           ? "frozen"
                : q->buffer        ? "buffer"
                : q->optimizer < 0 ? "not trained"
                                   : p->optimizers[q->optimizer].name);
  for (uint32_t i = 0; i < p->n_shares; i++)
    if (strcmp(p->shares[i].path, q->path) == 0)
      text_printf(&t, ", %s", p->optimizers[p->shares[i].optimizer].name);
  return t.at;
}

/* Adds a row to the table. `running`: the program of q runs, so q has values and a norm. */
static bool add_param(Repl *r, const ampc_program *p, const ampc_param *q, bool running, Table *t)
{
  char type[AMPC_TYPE_ROOM];
  ampc_dtype stored = q->buffer ? q->dtype : p->weights;
  const char *norm = "";
  if (running) {
    HostTensor x;
    ampc_space space = q->buffer ? AMPC_BUFFER : AMPC_MASTER;
    double sum = 0;
    if (!repl_check(r, tensor_read_param(r->rt, q, space, &x))) return false;
    for (int64_t i = 0; i < x.elements; i++) sum += x.at[i] * x.at[i];
    free(x.at);
    norm = arena_printf(t->arena, "%.5g", sqrt(sum));
  }
  TABLE_ROW(t, 0, {q->path},
            {arena_strdup(t->arena, ampc_type_text(type, stored, q->rank, q->dim))},
            {optimizers_text(t->arena, p, q)}, {norm});
  return true;
}

bool command_params(Repl *r, const char *arg)
{
  Compiled *p = program_latest(r);
  if (!p) return false;
  const ampc_program *g = p->c->program;
  int64_t total = 0;
  Table t;
  table_open(&t, p->c->arena, NULL, &r->options.view,
             "parameter:key<20|type|optimizer:<8|norm:number");
  for (uint32_t i = 0; i < g->n_params; i++) {
    const ampc_param *q = &g->params[i];
    if (!path_matches(arg, q->path)) continue;
    if (!add_param(r, g, q, r->live == p, &t)) return false;
    if (!q->buffer || q->fixed) total += q->elements;
  }
  if (!t.rows.n && *arg) return repl_error(r, "no parameter matches %s", arg);
  if (t.rows.n) table_put(&t);
  table_say(&t, 0, "total %lld parameters", (long long)total);
  table_close(&t);
  return true;
}

bool command_loss(Repl *r, const char *arg)
{
  (void)arg;
  if (!r->losses.n) return repl_error(r, "no step was trained yet; :train 100");
  plot_curve(r->losses.at, r->losses.n, "loss",
             arena_printf(r->arena, "step 1 to %zu", (size_t)r->losses.n));
  return true;
}

/* Prints the loss scale, or one line per optimizer if each has its own scale. */
static bool print_scales(Repl *r, const ampc_state *s)
{
  const ampc_program *p = r->live->c->program;
  const char *kind = s->dynamic ? "dynamic" : "static";
  if (!p->scaler.per_optimizer) printf("scale %g (%s)\n", (double)s->scale, kind);
  for (uint32_t i = 0; i < p->n_optimizers && p->scaler.per_optimizer; i++) {
    ampc_optimizer o;
    ampc_ref at = {AMPC_STATE, ampc_state_optimizer(i)};
    if (!repl_check(r, ampc_read(r->rt, at, &o, sizeof o))) return false;
    printf("scale %g (%s) of %s\n", (double)o.scale, kind, p->optimizers[i].name);
  }
  return true;
}

bool command_scaler(Repl *r, const char *arg)
{
  ampc_state s;
  (void)arg;
  if (!live_ready(r) || !repl_check(r, ampc_get_state(r->rt, &s))) return false;
  const ampc_program *p = r->live->c->program;
  if (!p->scaler.on) {
    printf("no scaler: precision %s needs none\n", p->precision);
    return true;
  }
  if (!print_scales(r, &s)) return false;
  printf("skipped %lld of %lld steps\n", s.skipped, s.step);
  if (p->scaler.replay) printf("replayed %lld times after an overflow\n", s.replayed);
  if (s.dynamic)
    printf("grows by a factor of %g after %lld steps without overflow (%lld so far), shrinks by a "
           "factor of %g; range %g to %g\n",
           s.growth_factor, s.growth_interval, s.growth, s.backoff_factor, (double)s.min_scale,
           (double)s.max_scale);
  if (s.dynamic && s.hysteresis > 1)
    printf("shrinks only after %lld overflows (%lld so far)\n", s.hysteresis, s.spared);
  return true;
}

/* Prints the allocated memory if the program runs, else the memory that it will need. The memory of
 * libraries is known only while it runs. */
bool command_memory(Repl *r, const char *arg)
{
  (void)arg;
  Compiled *p = program_latest(r);
  if (!p) return false;
  ampc_memory m = {.library = 0};
  if (r->live == p) {
    m = ampc_memory_of(r->rt);
  } else {
    for (int s = AMPC_STATE; s < AMPC_SPACE_COUNT; s++)
      m.total += m.space[s] = p->c->program->space_bytes[s];
  }
  Table t;
  table_open(&t, p->c->arena, NULL, &r->options.view, "for|bytes:bytes");
  for (int s = AMPC_STATE; s < AMPC_SPACE_COUNT; s++)
    if (m.space[s])
      TABLE_ROW(&t, 0, {ampc_space_of((ampc_space)s)->shown}, {.amount = (double)m.space[s]});
  if (m.library) TABLE_ROW(&t, 0, {"libraries"}, {.amount = (double)m.library});
  TABLE_ROW(&t, 0, {"total"}, {.amount = (double)m.total});
  table_put(&t);
  table_close(&t);
  return true;
}
