/* The options of the training loop, as `amp train` and emitted programs take them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ampc_rt.h"

enum {
  OPTION_device,
  OPTION_seed,
  OPTION_steps,
  OPTION_max_time,
  OPTION_limit_batches,
  OPTION_overfit_batches,
  OPTION_save,
  OPTION_save_every,
  OPTION_keep_last,
  OPTION_keep_best,
  OPTION_resume,
  OPTION_log,
  OPTION_log_dir,
  OPTION_json,
  OPTION_quiet
};

const ampc_option ampc_train_option_list[] = {
    [OPTION_device] = {"device", "DEVICE", "cpu, cuda or auto (default): cuda where there is one"},
    [OPTION_seed] = {"seed", "N", "of weights, order of the data and dropout (default: the job's)"},
    [OPTION_steps] = {"steps", "N", "end after N optimizer steps, those before a resume included"},
    [OPTION_max_time] = {"max-time", "TIME",
                         "end after this time, as at the last step: 90s, 15m, 2h"},
    [OPTION_limit_batches] = {"limit-batches", "N",
                              "no more than N batches an epoch and evaluation"},
    [OPTION_overfit_batches] = {"overfit-batches", "N",
                                "train on the same N batches in every epoch"},
    [OPTION_save] = {"save", "FILE", "write a checkpoint at the end and when interrupted"},
    [OPTION_save_every] = {"save-every", "N", "and every N steps"},
    [OPTION_keep_last] = {"keep-last", "K", "also keep the last K checkpoints, as FILE.stepN"},
    [OPTION_keep_best] = {"keep-best", "K", "also keep the K best ones by the first eval metric"},
    [OPTION_resume] = {"resume", "FILE", "go on from a checkpoint; for eval: the weights to use"},
    [OPTION_log] = {"log", "N", "a line every N steps (default: the job's, or 100)"},
    [OPTION_log_dir] = {"log-dir", "DIR", "write metrics.csv and TensorBoard events there"},
    [OPTION_json] = {"json", NULL, "a line of JSON a step on stdout, every N with --log N"},
    [OPTION_quiet] = {"quiet", NULL, "or -q: results only"},
    {NULL, NULL, NULL},
};

void ampc_train_options_print(void)
{
  for (const ampc_option *o = ampc_train_option_list; o->name; o++) {
    char left[64];
    snprintf(left, sizeof left, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    printf("  %-22s %s\n", left, o->help);
  }
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

static ampc_status read_number(const char *text, uint32_t option, uint64_t least, uint64_t *out)
{
  char *end = NULL;
  errno = 0;
  *out = strtoull(text, &end, 10);
  bool digits = *text >= '0' && *text <= '9' && !*end;
  if (digits && !errno && *out >= least && *out <= INT64_MAX) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "--%s %s: expected a number from %llu on",
                   ampc_train_option_list[option].name, text, (unsigned long long)least);
}

static ampc_status read_count(const char *text, uint32_t option, int64_t *out)
{
  uint64_t n;
  ampc_status status = read_number(text, option, 1, &n);
  *out = (int64_t)n;
  return status;
}

/* Seconds from "90", "90s", "1.5m", "2h". */
static ampc_status read_time(const char *text, double *out)
{
  char *end = NULL;
  double value = *text >= '0' && *text <= '9' ? strtod(text, &end) : 0;
  double unit = !end || !*end || strcmp(end, "s") == 0 ? 1
                : strcmp(end, "m") == 0                ? 60
                : strcmp(end, "h") == 0                ? 3600
                                                       : 0;
  *out = value * unit;
  if (isfinite(*out) && *out > 0) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "--max-time %s: expected a time such as 90s, 15m or 2h", text);
}

static ampc_status read_device(const char *word, ampc_train_options *t)
{
  t->device = word;
  if (strcmp(word, "cpu") == 0 || strcmp(word, "cuda") == 0 || strcmp(word, "auto") == 0)
    return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "--device %s: expected cpu, cuda or auto", word);
}

ampc_status ampc_train_option(uint32_t option, const char *value, ampc_train_options *t)
{
  switch (option) {
  case OPTION_device:
    return read_device(value, t);
  case OPTION_seed:
    t->seed_given = true;
    return read_number(value, option, 0, &t->seed);
  case OPTION_steps:
    return read_count(value, option, &t->steps);
  case OPTION_max_time:
    return read_time(value, &t->max_time);
  case OPTION_limit_batches:
    return read_count(value, option, &t->limit_batches);
  case OPTION_overfit_batches:
    return read_count(value, option, &t->overfit_batches);
  case OPTION_save:
    t->save = value;
    return AMPC_OK;
  case OPTION_save_every:
    return read_count(value, option, &t->save_every);
  case OPTION_keep_last:
    return read_count(value, option, &t->keep_last);
  case OPTION_keep_best:
    return read_count(value, option, &t->keep_best);
  case OPTION_resume:
    t->resume = value;
    return AMPC_OK;
  case OPTION_log:
    return read_count(value, option, &t->log);
  case OPTION_log_dir:
    t->log_dir = value;
    return AMPC_OK;
  case OPTION_json:
    t->json = true;
    return AMPC_OK;
  case OPTION_quiet:
    t->quiet = true;
    return AMPC_OK;
  default:
    return ampc_fail(AMPC_BAD_USAGE, "no such option");
  }
}
