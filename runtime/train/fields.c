/* See fields.h. */
#include "fields.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* THE table of fields, in the order of the columns.
 *
 *   per      how many there are: `run` one, `optimizer` one each, `group` one for each group of
 *            parameters; the names of the latter two end with a dot and the key of its settings
 *   section  of TensorBoard; with "" the name begins with its section
 *   there    whether the program has the field
 *   value    of field f in record r */
#define FIELDS(FIELD)                                                                              \
  FIELD(run, seconds, "speed", "%.3f", true, r->seconds)                                           \
  FIELD(run, samples_per_second, "speed", "%.1f", true, r->rate)                                   \
  FIELD(run, scale, "scaler", "%.9g", true, (double)r->state.scale)                                \
  FIELD(run, skipped, "scaler", "%.0f", true, (double)r->state.skipped)                            \
  FIELD(optimizer, lr, "", "%.9g", true, s->rates[f->optimizer])                                   \
  FIELD(group, lr, "", "%.9g", strchr(key, '.'), rate(s, r->block, f->key))                        \
  FIELD(optimizer, scale, "scaler", "%.9g", p->scaler.per_optimizer, s->scales[f->optimizer])      \
  FIELD(run, replayed, "scaler", "%.0f", p->scaler.replay, (double)r->state.replayed)              \
  FIELD(run, data_wait, "speed", "%.4f", true, r->data_wait)                                       \
  FIELD(run, grad_norm, "norms", "%.9g", n > 0, norm(s, r->block, NULL, AMPC_UPDATES_GRAD))        \
  FIELD(group, grad_norm, "norms", "%.9g", n > 1, norm(s, r->block, f->key, AMPC_UPDATES_GRAD))    \
  FIELD(run, weight_norm, "norms", "%.9g", n > 0, norm(s, r->block, NULL, AMPC_UPDATES_WEIGHT))    \
  FIELD(group, weight_norm, "norms", "%.9g", n > 1,                                                \
        norm(s, r->block, f->key, AMPC_UPDATES_WEIGHT))                                            \
  FIELD(run, update_norm, "norms", "%.9g", n > 0, norm(s, r->block, NULL, AMPC_UPDATES_CHANGE))    \
  FIELD(group, update_norm, "norms", "%.9g", n > 1, norm(s, r->block, f->key, AMPC_UPDATES_CHANGE))

/* ---- values ---- */

static const char *key_of(const ampc_metric_desc *m)
{
  return m->name + strlen("update.");
}

/* Finds the block's next group that had updates, from metric *i on; if `key` is not NULL, the group
 * with this key. Returns its sums, or NULL if there is no such group. */
static const ampc_metric *find_updates(const Session *s, uint32_t block, const char *key,
                                       uint32_t *i)
{
  const ampc_program *p = s->run.program;
  const ampc_block *b = &p->blocks[block];
  for (; *i < b->n_metrics; ++*i) {
    const ampc_metric_desc *m = &p->metrics[b->first_metric + *i];
    const ampc_metric *at = &s->run.sums[ampc_metric_slots(p->metrics, b->first_metric + *i)];
    if (field_is_metric(m) || at->count == 0) continue;
    if (!key || strcmp(key, key_of(m)) == 0) return at;
  }
  return NULL;
}

/* Returns the root of the mean square of a norm over the updates; of all groups without a key. */
static double norm(const Session *s, uint32_t block, const char *key, ampc_updates which)
{
  double sum = 0, any = NAN;
  const ampc_metric *at;
  for (uint32_t i = 0; (at = find_updates(s, block, key, &i)); i++) {
    sum += at[which].sum / at[which].count;
    any = 0;
  }
  return sqrt(sum) + any;
}

/* Returns the learning rate of a group in its last update. */
static double rate(const Session *s, uint32_t block, const char *key)
{
  uint32_t i = 0;
  const ampc_metric *at = find_updates(s, block, key, &i);
  return at ? (double)at[AMPC_UPDATES_RATE].last : NAN;
}

void fields_set(Session *s, const Record *r)
{
  for (uint32_t i = 0; i < s->n_fields; i++) {
    Field *f = &s->fields[i];
    int row = 0;
#define VALUE(per, called, section, format, there, number)                                         \
  if (f->row == row++) f->value = number;
    FIELDS(VALUE)
#undef VALUE
  }
}

/* ---- the list ---- */

bool field_is_metric(const ampc_metric_desc *m)
{
  return m->kind != AMPC_METRIC_UPDATES;
}

bool field_is_integer(const Field *f)
{
  return strcmp(f->format, "%.0f") == 0;
}

/* Lists the keys of groups; blocks that train the same groups have the same keys. */
static uint32_t list_keys(const ampc_program *p, const char **keys)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_metrics; i++) {
    uint32_t k = 0;
    if (field_is_metric(&p->metrics[i])) continue;
    while (k < n && strcmp(keys[k], key_of(&p->metrics[i])) != 0) k++;
    if (k == n) keys[n++] = key_of(&p->metrics[i]);
  }
  return n;
}

/* Adds a field. False: out of memory. */
static bool add(Session *s, const char *name, const char *section, Field f)
{
  const char *dot = f.key ? "." : "", *key = f.key ? f.key : "", *slash = *section ? "/" : "";
  Field *out = &s->fields[s->n_fields++];
  *out = f;
  if (asprintf(&out->name, "%s%s%s", name, dot, key) < 0) out->name = NULL;
  if (asprintf(&out->tag, "%s%s%s%s%s", section, slash, name, dot, key) < 0) out->tag = NULL;
  for (char *c = out->tag; c && *c; c++)
    if (*c == '.') *c = '/';
  return out->name && out->tag;
}

enum { PER_run, PER_optimizer, PER_group };

ampc_status fields_list(Session *s)
{
  const ampc_program *p = s->run.program;
  const char **keys = calloc(p->n_metrics + 1, sizeof *keys);
  uint32_t n = keys ? list_keys(p, keys) : 0, most[] = {1, p->n_optimizers, n};
  int row = 0;
#define ROW(...) +1
  s->fields = calloc((FIELDS(ROW)) * (1 + p->n_optimizers + n), sizeof *s->fields);
  bool good = keys && s->fields;
#define LIST(per, called, section, format, there, number)                                          \
  for (uint32_t i = 0; i < most[PER_##per] && good; i++) {                                         \
    const char *key = PER_##per == PER_optimizer ? p->optimizers[i].name                           \
                      : PER_##per == PER_group   ? keys[i]                                         \
                                                 : NULL;                                             \
    if (there) good = add(s, #called, section, (Field){NULL, NULL, format, row, key, i, NAN});     \
  }                                                                                                \
  row++;
  FIELDS(LIST)
  free(keys);
  return good ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory");
}

void fields_free(Session *s)
{
  for (uint32_t i = 0; i < s->n_fields; i++) {
    free(s->fields[i].name);
    free(s->fields[i].tag);
  }
  free(s->fields);
}
