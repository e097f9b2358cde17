/* The file of a tuning run, job.tune.json: all trials so far. A run that was stopped goes on with
 * it, and `amp report --tune` shows it. */
#include <math.h>
#include <string.h>
#include <unistd.h>
#include "runner/job/json.h"
#include "tune.h"

/* ---- the key ---- */

/* FNV-1a */
static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
  for (size_t i = 0; i < n; i++) h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
  return h;
}

/* Returns a text that differs if the job, an import or an option differs. */
static const char *key_of(const Tune *t, const Compile *c)
{
  uint64_t h = 0xcbf29ce484222325;
  for (uint32_t i = 0; i < c->sources.n; i++) {
    const Source *s = &c->sources.at[i];
    if (s->file) h = hash(h, s->text, s->size);
  }
  for (uint32_t i = 0; i < t->compile->n_settings; i++) {
    h = hash(h, t->compile->settings[i].key, strlen(t->compile->settings[i].key) + 1);
    h = hash(h, t->compile->settings[i].value, strlen(t->compile->settings[i].value) + 1);
  }
  for (uint32_t i = 0; i < t->compile->n_consts; i++) {
    h = hash(h, t->compile->consts[i].key, strlen(t->compile->consts[i].key) + 1);
    h = hash(h, t->compile->consts[i].value, strlen(t->compile->consts[i].value) + 1);
  }
  h = hash(h, t->train.data_dir, strlen(t->train.data_dir));
  h = hash(h, &t->compile->strict_rounding, sizeof t->compile->strict_rounding);
  h = hash(h, &t->compile->no_onednn, sizeof t->compile->no_onednn);
  return arena_printf(t->arena, "%016llx %u steps, %u batches, %s, %s, seed %llu",
                      (unsigned long long)h, t->steps, t->batches, t->compile->target, t->gpu->name,
                      (unsigned long long)t->train.seed);
}

/* ---- writing ---- */

static json_t *number(double x)
{
  return isfinite(x) ? json_real(x) : json_null();
}

static json_t *units_json(const Tune *t)
{
  json_t *out = json_array();
  for (uint32_t i = 0; i < t->units.n; i++) {
    const Unit *u = &t->units.at[i];
    json_array_append_new(
        out, json_pack("{s:s, s:s, s:i, s:b, s:i, s:o, s:o, s:i, s:o}", "path", u->path, "type",
                       u->type, "parent", (int)u->parent, "own", u->own, "line", (int)u->line,
                       "greatest", number(u->greatest), "least", number(u->least), "steps_over",
                       (int)u->steps_over, "under", number(u->under)));
  }
  return out;
}

static json_t *trial_json(const Tune *t, const Trial *trial)
{
  json_t *kinds = json_array();
  for (uint32_t i = 0; i < t->units.n; i++)
    json_array_append_new(kinds, t->units.at[i].own
                                     ? json_string(region_kind_names[t->kinds[trial->kinds[i]]])
                                     : json_null());
  return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "precision", trial->text, "gradient",
                   number(trial->from_f32.gradient), "loss", number(trial->from_f32.loss), "scale",
                   number(trial->scale), "predicted_us", number(trial->us), "measured_us",
                   number(trial->measured_us), "types", kinds);
}

ampc_status store_write(const Tune *t, const Trial *chosen)
{
  json_t *trials = json_array();
  for (uint32_t i = 0; i < t->trials.n; i++)
    json_array_append_new(trials, trial_json(t, t->trials.at[i]));
  json_t *all =
      json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "tune", t->key, "job",
                arena_shown(t->arena, t->compile->input, ""), "gpu", t->gpu->name, "steps",
                (int)t->steps, "bound", number(t->bound), "loss", number(t->loss), "nudged_loss",
                number(t->nudged_loss), "modules", units_json(t), "trials", trials, "chosen",
                chosen ? json_string(chosen->text) : json_null(), "pins",
                chosen ? tune_pins_json(t, chosen) : json_null());
  return json_save(all, t->store, &file_tune, JSON_INDENT(1));
}

/* ---- reading ---- */

static double real(const json_t *of, const char *name)
{
  const json_t *v = json_object_get(of, name);
  return json_is_number(v) ? json_number_value(v) : INFINITY;
}

/* Reads one trial. Returns false if it is damaged. */
static bool read_trial(Tune *t, const json_t *from)
{
  const char *text = json_string_value(json_object_get(from, "precision"));
  const json_t *types = json_object_get(from, "types");
  bool predicted = json_object_get(from, "predicted_us") != NULL; /* an older file has "us" */
  if (!text || !predicted || json_array_size(types) != t->units.n) return false;
  uint8_t *kinds = arena_array(t->arena, uint8_t, t->units.n);
  for (uint32_t i = 0; i < t->units.n; i++) {
    const char *name = json_string_value(json_array_get(types, i));
    uint8_t k = 0;
    while (name && k < t->n_kinds && strcmp(region_kind_names[t->kinds[k]], name) != 0) k++;
    if (k == t->n_kinds) return true; /* of a type that this run does not search */
    kinds[i] = k;
  }
  Trial *trial = arena_new(t->arena, Trial);
  *trial = (Trial){.text = arena_strdup(t->arena, text),
                   .kinds = kinds,
                   .from_f32 = {real(from, "gradient"), real(from, "loss")},
                   .scale = real(from, "scale"),
                   .us = real(from, "predicted_us"),
                   .measured_us = real(from, "measured_us")};
  vec_push(t->arena, &t->trials, trial);
  return true;
}

static bool read_units(Tune *t, const json_t *modules)
{
  if (json_array_size(modules) != t->units.n) return false;
  for (uint32_t i = 0; i < t->units.n; i++) {
    const json_t *m = json_array_get(modules, i);
    Unit *u = &t->units.at[i];
    const char *path = json_string_value(json_object_get(m, "path"));
    if (!path || strcmp(path, u->path) != 0) return false;
    u->greatest = real(m, "greatest");
    u->least = real(m, "least");
    u->under = real(m, "under");
    u->steps_over = (uint32_t)json_integer_value(json_object_get(m, "steps_over"));
  }
  return true;
}

static bool read_all(Tune *t, const json_t *all)
{
  const json_t *trials = json_object_get(all, "trials");
  bool good = read_units(t, json_object_get(all, "modules"));
  t->loss = real(all, "loss");
  t->nudged_loss = real(all, "nudged_loss");
  t->ran = isfinite(t->nudged_loss);
  for (size_t i = 0; i < json_array_size(trials) && good; i++)
    good = read_trial(t, json_array_get(trials, i));
  return good;
}

ampc_status store_read(Tune *t, Compile *c)
{
  json_t *all;
  t->key = key_of(t, c);
  ampc_status status = file_guard(t->store, &file_tune);
  if (status || access(t->store, F_OK) != 0) return status;
  status = json_read(FILE_NO_ROLE, t->store, &all);
  const char *key = json_string_value(json_object_get(all, "tune"));
  bool same = key && strcmp(key, t->key) == 0;
  if (all && same && !read_all(t, all))
    status = ampc_fail(AMPC_BAD_FILE, "%s is damaged; delete it to begin again", t->store);
  json_decref(all);
  return status;
}
