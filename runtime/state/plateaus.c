/* See plateaus.h. Keys are "ampc.plateau.opt.lr.start.best" and the like. */
#include "plateaus.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Malloced; NULL: out of memory. */
static char *key_of(const ampc_program *p, uint32_t i, const char *what)
{
  const char *setting = p->settings[p->plateaus[i].setting].name;
  size_t size = strlen(setting) + strlen(what) + 16;
  char *out = malloc(size);
  if (out) snprintf(out, size, "ampc.plateau.%s.%s", setting, what);
  return out;
}

/* ---- saving ---- */

typedef struct Writing {
  const ampc_program *program;
  TensorFile *file;
  uint32_t plateau;
} Writing;

__attribute__((format(printf, 3, 4))) static bool put(const Writing *w, const char *what,
                                                      const char *format, ...)
{
  char value[64], *key = key_of(w->program, w->plateau, what);
  va_list args;
  va_start(args, format);
  vsnprintf(value, sizeof value, format, args);
  va_end(args);
  bool good = key && tensor_file_set(w->file, key, value);
  free(key);
  return good;
}

ampc_status plateaus_write(ampc_runtime *rt, TensorFile *f)
{
  const ampc_program *p = rt->program;
  bool good = true;
  for (uint32_t i = 0; i < p->n_plateaus && good; i++) {
    const PlateauState *s = &rt->plateau[i];
    const Writing w = {p, f, i};
    float value;
    if (!s->any) continue;
    ampc_status status = runtime_read_setting(rt, p->plateaus[i].setting, &value);
    if (status) return status;
    good = put(&w, "value", "%.9g", (double)value) && put(&w, "bad", "%lld", (long long)s->bad) &&
           put(&w, "cooldown", "%lld", (long long)s->cooling) &&
           put(&w, "step", "%lld", (long long)s->step) &&
           (!s->found || put(&w, "best", "%.17g", s->best));
  }
  return good ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for a checkpoint");
}

/* ---- loading ---- */

typedef struct Reading {
  const TensorFile *file;
  const ampc_program *program;
  uint32_t plateau;
  char **key, *expected;
} Reading;

/* NULL: the file lacks it, or no memory for the key. */
static const char *text_of(const Reading *r, const char *what)
{
  free(*r->key);
  *r->key = key_of(r->program, r->plateau, what);
  return *r->key ? tensor_file_get(r->file, *r->key) : NULL;
}

static bool get_count(const Reading *r, const char *what, int64_t most, int64_t *out)
{
  const char *text = text_of(r, what);
  ampc_range_text(r->expected, 0, most);
  return text && ampc_read_count(text, 0, most, out);
}

static bool get_real(const Reading *r, const char *text, ampc_domain domain, double *out)
{
  snprintf(r->expected, AMPC_RANGE_ROOM, "%s", ampc_domain_text(domain));
  return ampc_read_real(text, out) && ampc_in_domain(domain, *out);
}

static bool get_one(const Reading *r, int64_t steps, SavedPlateau *out)
{
  const ampc_program *p = r->program;
  ampc_domain domain = p->settings[p->plateaus[r->plateau].setting].domain;
  const char *value = text_of(r, "value");
  if (!value) return *r->key != NULL; /* it has not been evaluated */
  out->state.any = true;
  if (!get_real(r, value, domain, &out->value)) return false;
  const char *best = text_of(r, "best");
  out->state.found = best != NULL;
  if (best && !get_real(r, best, AMPC_FINITE, &out->state.best)) return false;
  return get_count(r, "bad", steps, &out->state.bad) &&
         get_count(r, "cooldown", AMPC_MOST_STEPS, &out->state.cooling) &&
         get_count(r, "step", steps, &out->state.step);
}

bool plateaus_read(const TensorFile *f, const ampc_program *p, int64_t steps, SavedPlateau *out,
                   char **out_key, char expected[AMPC_RANGE_ROOM])
{
  bool good = true;
  for (uint32_t i = 0; i < p->n_plateaus && good; i++)
    good = get_one(&(Reading){f, p, i, out_key, expected}, steps, &out[i]);
  return good;
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
