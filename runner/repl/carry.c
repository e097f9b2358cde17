/* Copies state from the runtime of one program to the runtime of the next: parameters with the same
 * path, shape and type; their optimizer state, if the optimizer has the same name and kind;
 * counters and the scaler. */
#include "repl.h"
#include "runtime/runtime.h"
#include <stdlib.h>
#include <string.h>

/* Returns the parameter or buffer of p whose values `like` takes over. NULL: none has the same
 * path, shape and type, so `like` keeps its initial values. */
static const ampc_param *find_like(const ampc_program *p, const ampc_param *like)
{
  for (uint32_t i = 0; i < p->n_params; i++) {
    const ampc_param *q = &p->params[i];
    if (q->buffer == like->buffer && q->dtype == like->dtype && q->rank == like->rank &&
        memcmp(q->dim, like->dim, q->rank * sizeof *q->dim) == 0 &&
        strcmp(q->path, like->path) == 0)
      return q;
  }
  return NULL;
}

/* Copies the values of a in a space of `from` to the values of b in a space of `to`. They pass
 * through host memory, because neither runtime can address the spaces of the other. */
static ampc_status copy_space(ampc_runtime *from, const ampc_param *a, ampc_space space,
                              ampc_runtime *to, const ampc_param *b, ampc_space to_space)
{
  void *room = malloc((size_t)(b->elements * ampc_element_size(ampc_program_of(to), b->dtype)) + 1);
  if (!room) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = ampc_read_param(from, a, space, room);
  if (!status) status = ampc_write_param(to, b, to_space, room);
  free(room);
  return status;
}

static ampc_status copy_param(ampc_runtime *from, const ampc_param *a, ampc_runtime *to,
                              const ampc_param *b, ampc_space space)
{
  return copy_space(from, a, space, to, b, space);
}

/* Whether moments can be copied: another kind of optimizer gives moments another meaning. */
static bool same_optimizer(const ampc_optimizer_desc *a, const ampc_optimizer_desc *b)
{
  return a && b && strcmp(a->name, b->name) == 0 && strcmp(a->kind, b->kind) == 0;
}

/* Returns the parameter, or its share, that this optimizer updates in p; NULL: neither. */
static const ampc_param *held_by(const ampc_program *p, const ampc_param *a,
                                 const ampc_optimizer_desc *o)
{
  if (a->optimizer >= 0 && same_optimizer(&p->optimizers[a->optimizer], o)) return a;
  for (uint32_t i = 0; i < p->n_shares; i++) {
    const ampc_param *share = &p->shares[i];
    if (strcmp(share->path, a->path) == 0 && same_optimizer(&p->optimizers[share->optimizer], o))
      return share;
  }
  return NULL;
}

/* Copies the moments of parameter a to b, a parameter or a share. */
static ampc_status carry_moments(ampc_runtime *from, const ampc_param *a, ampc_runtime *to,
                                 const ampc_param *b)
{
  const ampc_program *p = ampc_program_of(from);
  if (b->optimizer < 0) return AMPC_OK;
  const ampc_optimizer_desc *n = &ampc_program_of(to)->optimizers[b->optimizer], *o;
  if (!(a = held_by(p, a, n))) return AMPC_OK;
  o = &p->optimizers[a->optimizer];
  const struct {
    ampc_space space;
    bool wanted;
  } spaces[] = {{AMPC_MOMENT1, o->uses_moment1 && n->uses_moment1},
                {AMPC_MOMENT2, o->uses_moment2 && n->uses_moment2},
                {AMPC_MOMENT3, o->uses_moment3 && n->uses_moment3}};
  ampc_status status = AMPC_OK;
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces && !status; i++)
    if (spaces[i].wanted) status = copy_param(from, a, to, b, spaces[i].space);
  return status;
}

static ampc_status carry_param(ampc_runtime *from, const ampc_param *a, ampc_runtime *to,
                               const ampc_param *b)
{
  const ampc_program *p = ampc_program_of(from), *q = ampc_program_of(to);
  if (b->buffer) return copy_param(from, a, to, b, AMPC_BUFFER);
  ampc_status status = copy_param(from, a, to, b, AMPC_MASTER);
  if (!status) status = carry_moments(from, a, to, b);
  for (uint32_t i = 0; i < q->n_shares && !status; i++)
    if (strcmp(q->shares[i].path, b->path) == 0) status = carry_moments(from, a, to, &q->shares[i]);
  const ampc_optimizer_desc *o = ampc_average_of(p, a), *n = ampc_average_of(q, b);
  if (status || !n) return status;
  return same_optimizer(o, n) ? copy_param(from, a, to, b, AMPC_EMA)
                              : copy_space(from, a, AMPC_MASTER, to, b, AMPC_EMA);
}

/* Copies parameters. Their 16-bit copies are then computed from the masters. */
static ampc_status carry_params(ampc_runtime *from, ampc_runtime *to, uint32_t *out_kept)
{
  const ampc_program *p = ampc_program_of(from), *q = ampc_program_of(to);
  ampc_status status = AMPC_OK;
  *out_kept = 0;
  for (uint32_t i = 0; i < q->n_params && !status; i++) {
    const ampc_param *a = find_like(p, &q->params[i]);
    if (!a) continue;
    status = carry_param(from, a, to, &q->params[i]);
    ++*out_kept;
  }
  return status ? status : ampc_refresh_copies(to);
}

ampc_status carry_averages(ampc_runtime *from, ampc_runtime *to)
{
  const ampc_program *p = from ? ampc_program_of(from) : NULL, *q = ampc_program_of(to);
  ampc_status status = AMPC_OK;
  if (!p || !p->space_bytes[AMPC_EMA]) return AMPC_OK;
  for (uint32_t i = 0; i < q->n_params && !status; i++) {
    const ampc_param *a = find_like(p, &q->params[i]);
    if (a && ampc_average_of(p, a))
      status = copy_space(from, a, AMPC_EMA, to, &q->params[i], AMPC_MASTER);
  }
  return status ? status : ampc_refresh_copies(to);
}

/* Copies the loss scale of an optimizer if it is dynamic in both programs. `from` may have one
 * scale for all optimizers. */
static void carry_scale(const ampc_program *p, const ampc_state *from, const ampc_optimizer *old,
                        const ampc_program *q, ampc_optimizer *to)
{
  if (!q->scaler.per_optimizer || !p->scaler.dynamic || !q->scaler.dynamic) return;
  bool own = p->scaler.per_optimizer;
  to->scale = own ? old->scale : from->scale;
  to->inv_scale = own ? old->inv_scale : from->inv_scale;
  to->growth = own ? old->growth : from->growth;
  to->spared = own ? old->spared : from->spared;
}

static ampc_status carry_optimizer(ampc_runtime *from, uint32_t k, ampc_runtime *to, uint32_t i)
{
  ampc_state state;
  ampc_optimizer old, new, out;
  ampc_ref place = {AMPC_STATE, ampc_state_optimizer(i)};
  ampc_status status = ampc_get_state(from, &state);
  if (!status)
    status = ampc_read(from, (ampc_ref){AMPC_STATE, ampc_state_optimizer(k)}, &old, sizeof old);
  if (!status) status = ampc_read(to, place, &new, sizeof new);
  if (status) return status;
  out = old;
  out.scale = new.scale;
  out.inv_scale = new.inv_scale;
  out.growth = new.growth;
  out.spared = new.spared;
  carry_scale(ampc_program_of(from), &state, &old, ampc_program_of(to), &out);
  return ampc_write(to, place, &out, sizeof out);
}

/* Copies ampc_optimizer structs, which count updates, for schedules and bias correction. */
static ampc_status carry_optimizers(ampc_runtime *from, ampc_runtime *to)
{
  const ampc_program *p = ampc_program_of(from), *q = ampc_program_of(to);
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < q->n_optimizers; i++)
    for (uint32_t k = 0; k < p->n_optimizers && !status; k++) {
      if (!same_optimizer(&p->optimizers[k], &q->optimizers[i])) continue;
      status = carry_optimizer(from, k, to, i);
    }
  return status;
}

/* Copies counters, so that schedules and random numbers continue. The loss scale is copied only if
 * it is dynamic in both programs. */
static ampc_status carry_state(ampc_runtime *from, ampc_runtime *to)
{
  ampc_state old, new;
  ampc_status status = ampc_get_state(from, &old);
  if (!status) status = ampc_get_state(to, &new);
  if (status) return status;
  new.seed = old.seed;
  new.body = old.body;
  new.step = old.step;
  new.epoch = old.epoch;
  new.skipped = old.skipped;
  new.empty = old.empty;
  new.replayed = old.replayed;
  if (old.dynamic && new.dynamic) {
    new.scale = old.scale;
    new.inv_scale = old.inv_scale;
    new.growth = old.growth;
    new.spared = old.spared;
  }
  return ampc_write(to, (ampc_ref){AMPC_STATE, 0}, &new, sizeof new);
}

/* Copies the results of evaluations: the step of the best one, and settings that a plateau has
 * lowered. */
ampc_status carry_judged(ampc_runtime *from, ampc_runtime *to)
{
  const ampc_program *p = from->program, *q = to->program;
  ampc_status status = AMPC_OK;
  to->patience = from->patience;
  for (uint32_t i = 0; i < q->n_plateaus; i++)
    for (uint32_t k = 0; k < p->n_plateaus && !status; k++) {
      uint32_t old = p->plateaus[k].setting, new = q->plateaus[i].setting;
      float value;
      if (!from->plateau[k].any || strcmp(p->settings[old].name, q->settings[new].name) != 0)
        continue;
      to->plateau[i] = from->plateau[k];
      status = runtime_read_setting(from, old, &value);
      if (!status) status = runtime_write_setting(to, new, (double)value);
    }
  return status;
}

ampc_status carry(ampc_runtime *from, ampc_runtime *to, uint32_t *out_kept)
{
  ampc_status status = ampc_wait(from);
  if (!status) status = carry_state(from, to);
  if (!status) status = carry_optimizers(from, to);
  return status ? status : carry_params(from, to, out_kept);
}
