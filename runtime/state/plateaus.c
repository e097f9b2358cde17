/* See plateaus.h. A key is, for example, "ampc.plateau.opt.lr.start.best". */
#include "plateaus.h"

#define PLATEAU_KEY(p, i, what)                                                                    \
  KEY("ampc.plateau.", (p)->settings[(p)->plateaus[i].setting].name, what)

static bool set_count(TensorFile *f, const char *const *key, int64_t value)
{
  return metadata_set(f, key, "%lld", (long long)value);
}

bool plateaus_write(const ampc_program *p, const SavedPlateau *from, TensorFile *f)
{
  bool good = true;
  for (uint32_t i = 0; i < p->n_plateaus && good; i++) {
    const PlateauState *s = &from[i].state;
    if (!s->any) continue;
    good = metadata_set(f, PLATEAU_KEY(p, i, ".value"), "%.9g", from[i].value) &&
           set_count(f, PLATEAU_KEY(p, i, ".bad"), s->bad) &&
           set_count(f, PLATEAU_KEY(p, i, ".cooldown"), s->cooling) &&
           set_count(f, PLATEAU_KEY(p, i, ".step"), s->step) &&
           (!s->found || metadata_set(f, PLATEAU_KEY(p, i, ".best"), "%.17g", s->best));
  }
  return good;
}

void plateaus_load(Metadata *m, const ampc_program *p, int64_t steps, SavedPlateau *out)
{
  for (uint32_t i = 0; i < p->n_plateaus; i++) {
    PlateauState *s = &out[i].state;
    s->any = metadata_get(m, PLATEAU_KEY(p, i, ".value")) != NULL;
    if (!s->any) continue; /* the metric has not been evaluated */
    ampc_domain domain = p->settings[p->plateaus[i].setting].domain;
    out[i].value = metadata_real(m, PLATEAU_KEY(p, i, ".value"), domain);
    s->found = metadata_get(m, PLATEAU_KEY(p, i, ".best")) != NULL;
    if (s->found) s->best = metadata_real(m, PLATEAU_KEY(p, i, ".best"), AMPC_FINITE);
    s->bad = metadata_count(m, PLATEAU_KEY(p, i, ".bad"), 0, steps);
    s->cooling = metadata_count(m, PLATEAU_KEY(p, i, ".cooldown"), 0, AMPC_MOST_STEPS);
    s->step = metadata_count(m, PLATEAU_KEY(p, i, ".step"), 0, steps);
  }
}

ampc_status plateaus_read(ampc_runtime *rt, SavedPlateau *out)
{
  const ampc_program *p = rt->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_plateaus && !status; i++) {
    float value;
    status = runtime_read_setting(rt, p->plateaus[i].setting, &value);
    out[i] = (SavedPlateau){rt->plateau[i], (double)value};
  }
  return status;
}

ampc_status plateaus_apply(ampc_runtime *rt, const SavedPlateau *from)
{
  const ampc_program *p = rt->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_plateaus && !status; i++) {
    float start;
    if (!from[i].state.any) continue;
    status = runtime_read_setting(rt, p->plateaus[i].setting, &start);
    rt->plateau[i] = from[i].state;
    rt->plateau[i].start = (double)start;
    if (!status) status = runtime_write_setting(rt, p->plateaus[i].setting, from[i].value);
  }
  return status;
}
