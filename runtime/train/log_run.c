/* --log-dir: writes run.json, which says how the run was started. `amp report --log` shows it.
 *
 * The file is written before the first step, and again if the run resumes, with the options of
 * that time. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "log.h"
#include "common/file.h"
#include "train_options.h"

/* Only numbers: the paths that a run writes always differ, and a command line of another program
 * that embeds the runtime may contain secrets. */
static json_t *options_json(const ampc_train_options *t)
{
  json_t *out = json_object();
  for (size_t i = 0; ampc_train_option_list[i].name; i++) {
    double value = ampc_train_option_number(i, t);
    if (!(value > 0)) continue;
    json_t *number = value == floor(value) ? json_integer((json_int_t)value) : json_real(value);
    json_object_set_new(out, ampc_train_option_list[i].name, number);
  }
  return out;
}

/* Settings have the values with which the run begins, schedules included. */
static json_t *settings_json(const Session *s)
{
  json_t *out = json_object();
  for (uint32_t i = 0; i < s->run.program->n_settings; i++) {
    float value;
    if (s->run.program->settings[i].steps_of && !s->run.rt->given[i]) continue; /* not known yet */
    if (runtime_read_setting(s->run.rt, i, &value))
      continue; /* the first step reports the device's failure */
    json_object_set_new(out, s->run.program->settings[i].name, json_real((double)value));
  }
  return out;
}

static json_t *blocks_json(const ampc_program *p)
{
  json_t *out = json_object();
  for (uint32_t i = 0; i < p->n_blocks; i++) {
    const ampc_block *b = &p->blocks[i];
    if (b->kind == AMPC_INFER) continue;
    json_t *block = json_pack("{s:I}", "batch", (json_int_t)b->batch);
    const char *length = b->max_steps ? "steps" : "epochs";
    if (b->kind == AMPC_TRAIN)
      json_object_set_new(block, length, json_integer(b->max_steps ? b->max_steps : b->epochs));
    if (b->accumulate > 1) json_object_set_new(block, "accumulate", json_integer(b->accumulate));
    json_object_set_new(out, b->name, block);
  }
  return out;
}

/* Which values of metrics are better, for the report: {"train.loss": "min", "eval.acc": "max"}. */
static json_t *modes_json(const ampc_program *p)
{
  static const char *const words[] = {[AMPC_MODE_MIN] = "min", [AMPC_MODE_MAX] = "max"};
  json_t *out = json_object();
  for (uint32_t i = 0; i < p->n_blocks; i++)
    for (uint32_t k = 0; k < p->blocks[i].n_metrics; k++) {
      const ampc_metric_desc *m = &p->metrics[p->blocks[i].first_metric + k];
      ampc_mode mode = ampc_mode_of(m);
      json_t *name = json_sprintf("%s.%s", p->blocks[i].name, m->name);
      if (mode && name) json_object_set_new(out, json_string_value(name), json_string(words[mode]));
      json_decref(name);
    }
  return out;
}

static json_t *run_json(const Session *s)
{
  const ampc_program *p = s->run.program;
  json_t *optimizers = json_object(), *config = json_loads(p->config, 0, NULL);
  for (uint32_t i = 0; i < p->n_optimizers; i++)
    json_object_set_new(optimizers, p->optimizers[i].name, json_string(p->optimizers[i].kind));
  json_t *out = json_pack(
      "{s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:O*, s:o, s:o, s:o, s:o}", "run", p->source, "version",
      AMPC_VERSION, "precision", p->precision, "device", ampc_device_name(s->run.rt), "seed",
      (json_int_t)s->seed, "resumed at step", (json_int_t)s->run.steps, "optimizers", optimizers,
      "const", json_object_get(config, "const"), "blocks", blocks_json(p), "modes", modes_json(p),
      "settings", settings_json(s), "options", options_json(s->run.options));
  json_decref(config);
  return out;
}

void log_run(Session *s)
{
  json_t *run = run_json(s);
  char *text = run ? json_dumps(run, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
  char *path = file_join(s->run.options->log_dir, "run.json");
  ampc_status status = text && path ? file_write(path, &file_run, text, (int64_t)strlen(text))
                                    : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  json_decref(run);
  free(text);
  free(path);
  if (status)
    progress_warn(&s->progress, "note: %s; the run continues without it", ampc_last_error());
}
