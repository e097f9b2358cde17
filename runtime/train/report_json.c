/* --json: one object per line on stdout. A number that JSON cannot express (NaN, infinity) is null,
 * and also a metric whose `every` has not fired. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/shown.h"
#include "fields.h"

typedef struct Json {
  bool failed; /* writing to stdout failed */
} Json;

static json_t *number(double v)
{
  return isfinite(v) ? json_real(v) : json_null();
}

/* Converts a path, which need not be UTF-8, to a string of JSON. NULL becomes null. */
static json_t *path_text(const char *path)
{
  size_t room = path ? 4 * strlen(path) + 1 : 0;
  char *text = path ? malloc(room) : NULL;
  json_t *out = text ? json_string(ampc_show(text, room, path, "")) : json_null();
  free(text);
  return out;
}

/* Returns a matrix as a list of rows. */
static json_t *matrix(const Session *s, uint32_t metric)
{
  const ampc_program *p = s->run.program;
  const ampc_metric *at = s->run.sums + ampc_metric_slots(p->metrics, metric);
  json_t *rows = json_array();
  for (uint32_t n = metric_classes(&p->metrics[metric]), i = 0; i < n; i++) {
    json_t *row = json_array();
    for (uint32_t k = 0; k < n; k++)
      json_array_append_new(row, json_integer((json_int_t)at[i * n + k].sum));
    json_array_append_new(rows, row);
  }
  return rows;
}

static json_t *metrics(const Session *s, uint32_t block)
{
  const ampc_block *b = &s->run.program->blocks[block];
  json_t *out = json_object();
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++)
    if (field_is_metric(&s->run.program->metrics[i]))
      json_object_set_new(out, s->run.program->metrics[i].name,
                          !s->run.known[i]                                ? json_null()
                          : metric_is_number(&s->run.program->metrics[i]) ? number(s->run.values[i])
                                                                          : matrix(s, i));
  return out;
}

/* Writes a whole line at once, so that a reader has it as soon as the step is done. */
static void put(Session *s, Json *own, json_t *line)
{
  const Ranks *ranks = s->run.rt->members.ranks;
  if (line && ranks) json_object_set_new(line, "rank", json_integer(ranks->rank));
  if (line && ranks) json_object_set_new(line, "ranks", json_integer(ranks->size));
  bool good = line && json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0;
  good = good && putchar('\n') != EOF && fflush(stdout) == 0;
  json_decref(line);
  if (good) return;
  if (!own->failed)
    progress_warn(&s->progress, "note: cannot write to stdout: %s; the run continues without JSON",
                  strerror(errno));
  own->failed = true;
  clearerr(stdout);
}

static ampc_status open_json(Session *s, void **out)
{
  if (!s->run.options->json) return AMPC_OK;
  *out = calloc(1, sizeof(Json));
  return *out ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory");
}

static bool is_due(Session *s, void *own, uint32_t block, bool must)
{
  (void)own;
  (void)block;
  return must || s->run.steps % (s->run.options->log ? s->run.options->log : 1) == 0;
}

static void tell_step(Session *s, void *own, const Record *r)
{
  if (((Json *)own)->failed) return;
  json_t *line = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "event", "step", "block",
                           s->run.program->blocks[r->block].name, "step", (json_int_t)r->step, "of",
                           (json_int_t)s->run.total, "epoch", (json_int_t)r->state.epoch + 1,
                           "samples", (json_int_t)r->samples, "metrics", metrics(s, r->block));
  for (uint32_t i = 0; i < s->n_fields; i++) {
    const Field *f = &s->fields[i];
    json_object_set_new(
        line, f->name, field_is_integer(f) ? json_integer((json_int_t)f->value) : number(f->value));
  }
  if (r->state.empty) json_object_set_new(line, "empty", json_integer(r->state.empty));
  put(s, own, line);
}

static void tell_evaluated(Session *s, void *own, uint32_t block)
{
  if (((Json *)own)->failed) return;
  put(s, own,
      json_pack("{s:s, s:s, s:I, s:o}", "event", "eval", "block",
                s->run.program->blocks[block].name, "step", (json_int_t)s->run.steps, "metrics",
                metrics(s, block)));
}

static const char *reason(const Session *s, ampc_status status)
{
  if (status == AMPC_INTERRUPTED) return "interrupted";
  if (status) return "failed";
  return s->out_of_time ? "time" : "done";
}

static void tell_end(Session *s, Json *own, ampc_status status)
{
  json_t *line =
      json_pack("{s:s, s:s, s:i, s:I, s:o}", "event", "end", "reason", reason(s, status), "status",
                (int)status, "step", (json_int_t)s->run.steps, "saved", path_text(s->saved));
  if (status) json_object_set_new(line, "error", json_string(ampc_last_error()));
  put(s, own, line);
}

/* Writes the end line, even of a run that failed before `open`. */
static ampc_status end_json(Session *s, void *own, ampc_status status)
{
  Json unopened = {false}, *json = own ? own : &unopened;
  if (s->run.options->json && !json->failed) tell_end(s, json, status);
  bool lost = json->failed;
  free(own);
  if (status || !lost) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "the lines of JSON on stdout are not complete");
}

const Sink json_sink = {open_json, is_due, tell_step, tell_evaluated, end_json};
