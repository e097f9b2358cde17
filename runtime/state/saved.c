/* See saved.h. */
#include "saved.h"
#include <stdlib.h>
#include <string.h>
#include "adapter.h"
#include "metadata.h"

/* ---- tensors ---- */

TensorType entry_type(const ampc_program *p, const Entry *e)
{
  const ampc_param *q = e->param;
  return (TensorType){q->buffer ? q->dtype : AMPC_F32, p->real64, q->rank, q->dim};
}

void entries_free(Entries *e)
{
  for (uint32_t i = 0; i < e->n; i++) free(e->at[i].name);
  free(e->at);
}

/* Adds a parameter or buffer unless files of this kind lack it. */
static void add_weight(Entries *e, EntriesOf what, const ampc_param *q, const char *path)
{
  ampc_space space = q->buffer ? AMPC_BUFFER : AMPC_MASTER;
  bool adapter = what == ENTRIES_adapter;
  if (q->given && what != ENTRIES_run) return;
  char *name = metadata_key(KEY(adapter ? AMPC_PEFT_PREFIX : "", path));
  e->at[e->n++] = (Entry){.param = q, .space = space, .name = name};
}

static void add_kept(Entries *e, const ampc_param *q, const ampc_optimizer_desc *o,
                     ampc_space space, const char *what)
{
  char *name = metadata_key(KEY("optimizer.", o->name, ".", what, "/", q->path));
  e->at[e->n++] = (Entry){.param = q, .space = space, .of = o, .name = name};
}

/* Adds the moments that the optimizer of a parameter or share keeps. */
static void add_moments(Entries *e, const ampc_program *p, const ampc_param *q)
{
  if (q->optimizer < 0) return;
  const ampc_optimizer_desc *o = &p->optimizers[q->optimizer];
  if (o->uses_moment1) add_kept(e, q, o, AMPC_MOMENT1, "moment1");
  if (o->uses_moment2) add_kept(e, q, o, AMPC_MOMENT2, "moment2");
  if (o->uses_moment3) add_kept(e, q, o, AMPC_MOMENT3, "moment3");
}

static void add_all_kept(Entries *e, const ampc_program *p)
{
  for (uint32_t i = 0; i < p->n_params; i++) {
    const ampc_optimizer_desc *average = ampc_average_of(p, &p->params[i]);
    add_moments(e, p, &p->params[i]);
    if (average) add_kept(e, &p->params[i], average, AMPC_EMA, "ema");
  }
  for (uint32_t i = 0; i < p->n_shares; i++) add_moments(e, p, &p->shares[i]);
}

ampc_status entries_of(const ampc_program *p, EntriesOf what, Entries *out)
{
  bool weights = what == ENTRIES_weights || what == ENTRIES_adapter;
  uint32_t most = 5 * p->n_params + 3 * p->n_shares + p->n_aliases;
  *out = (Entries){.at = calloc(most + 1, sizeof(Entry))};
  bool good = out->at != NULL;
  for (uint32_t i = 0; i < p->n_params && good; i++)
    add_weight(out, what, &p->params[i], p->params[i].path);
  for (uint32_t i = 0; i < p->n_aliases && good && weights; i++)
    add_weight(out, what, &p->params[p->aliases[i].param], p->aliases[i].path);
  if (good && !weights) add_all_kept(out, p);
  for (uint32_t i = 0; i < out->n; i++) good = good && out->at[i].name;
  return good ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for a checkpoint");
}

/* ---- numbers ---- */

ampc_status saved_open(const ampc_program *p, Saved *out)
{
  *out = (Saved){.optimizer = calloc(p->n_optimizers + 1, sizeof *out->optimizer),
                 .has = calloc(p->n_optimizers + 1, sizeof *out->has),
                 .plateau = calloc(p->n_plateaus + 1, sizeof *out->plateau)};
  return out->optimizer && out->has && out->plateau
             ? AMPC_OK
             : ampc_fail(AMPC_RUN_FAILED, "out of memory for a checkpoint");
}

void saved_free(Saved *s)
{
  free(s->optimizer);
  free(s->has);
  free(s->plateau);
}

static ampc_ref optimizer_place(uint32_t i)
{
  return (ampc_ref){AMPC_STATE, ampc_state_optimizer(i)};
}

ampc_status saved_read(ampc_runtime *rt, Saved *out)
{
  const ampc_program *p = rt->program;
  ampc_status status = ampc_get_state(rt, &out->state);
  out->dynamic = out->state.dynamic;
  out->patience = rt->patience;
  for (uint32_t i = 0; i < p->n_optimizers && !status; i++) {
    ampc_optimizer *o = &out->optimizer[i];
    status = ampc_read(rt, optimizer_place(i), o, sizeof *o);
    out->has[i] = true;
    if (p->scaler.per_optimizer) continue;
    o->scale = out->state.scale;
    o->growth = out->state.growth;
    o->spared = out->state.spared;
  }
  return status ? status : plateaus_read(rt, out->plateau);
}

ampc_status saved_apply(ampc_runtime *rt, const Saved *s)
{
  const ampc_program *p = rt->program;
  ampc_state now;
  ampc_status status = runtime_reset_state(rt, (uint64_t)s->state.seed);
  if (!status) status = ampc_get_state(rt, &now);
  if (!status) status = plateaus_apply(rt, s->plateau);
  if (status) return status;
  rt->patience = s->patience;
  now.body = s->state.body;
  now.step = s->state.step;
  now.epoch = s->state.epoch;
  now.skipped = s->state.skipped;
  now.replayed = s->state.replayed;
  now.empty = s->state.empty;
  const float initial = now.scale;
  bool restores = s->dynamic && now.dynamic;
  if (restores) {
    now.scale = s->state.scale;
    now.inv_scale = (float)(1 / (double)now.scale);
    now.growth = s->state.growth;
    now.spared = s->state.spared;
  }
  status = ampc_write(rt, (ampc_ref){AMPC_STATE, 0}, &now, sizeof now);
  for (uint32_t i = 0; i < p->n_optimizers && !status; i++) {
    const ampc_optimizer *old = &s->optimizer[i];
    ampc_optimizer o = {.taken = old->taken};
    bool has = restores && s->has[i];
    if (p->scaler.per_optimizer) {
      o.scale = has ? old->scale : initial;
      o.inv_scale = (float)(1 / (double)o.scale);
      o.growth = has ? old->growth : 0;
      o.spared = has ? old->spared : 0;
    }
    status = ampc_write(rt, optimizer_place(i), &o, sizeof o);
  }
  return status;
}
