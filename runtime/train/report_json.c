/* --json: one object a line on stdout. Numbers that JSON cannot write (NaN, infinity) are null. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "train.h"

static json_t *number(double v)
{
  return isfinite(v) ? json_real(v) : json_null();
}

static json_t *metrics(const Session *s, uint32_t block)
{
  const ampc_block *b = &s->program->blocks[block];
  json_t *out = json_object();
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++)
    json_object_set_new(out, s->program->metrics[i].name, number(s->values[i]));
  return out;
}

/* A whole line at once, so that a reader sees it when the step is done. */
static void put(Session *s, json_t *line)
{
  bool good = line && json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0;
  good = good && putchar('\n') != EOF && fflush(stdout) == 0;
  json_decref(line);
  if (good) return;
  if (!s->json_failed)
    progress_warn(&s->progress, "note: cannot write to stdout: %s; the run goes on without",
                  strerror(errno));
  s->json_failed = true;
  clearerr(stdout);
}

void json_step(Session *s, uint32_t block, const Record *r)
{
  json_t *rates = json_object();
  for (uint32_t i = 0; i < s->program->n_optimizers; i++)
    json_object_set_new(rates, s->program->optimizers[i].name, number(s->rates[i]));
  if (s->json_failed) {
    json_decref(rates);
    return;
  }
  put(s, json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:o}", "event", "step",
                   "block", s->program->blocks[block].name, "step", (json_int_t)r->step, "of",
                   (json_int_t)s->total, "epoch", (json_int_t)r->state.epoch + 1, "metrics",
                   metrics(s, block), "lr", rates, "scale", number((double)r->state.scale),
                   "skipped", (json_int_t)r->state.skipped, "samples", (json_int_t)r->samples,
                   "seconds", number(r->seconds)));
}

void json_evaluated(Session *s, uint32_t block)
{
  if (s->json_failed) return;
  put(s, json_pack("{s:s, s:s, s:I, s:o}", "event", "eval", "block", s->program->blocks[block].name,
                   "step", (json_int_t)s->steps, "metrics", metrics(s, block)));
}

static const char *reason(const Session *s, ampc_status status)
{
  if (status == AMPC_INTERRUPTED) return "interrupted";
  if (status) return "failed";
  return s->out_of_time ? "time" : "done";
}

void json_end(Session *s, ampc_status status)
{
  if (s->json_failed) return;
  json_t *line =
      json_pack("{s:s, s:s, s:i, s:I, s:s?}", "event", "end", "reason", reason(s, status), "status",
                (int)status, "step", (json_int_t)s->steps, "saved", s->saved);
  if (status) json_object_set_new(line, "error", json_string(ampc_last_error()));
  put(s, line);
}
