/* Reads the options of the training loop by their list, train_options.def. */
#include "train_options.h"
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const ampc_option ampc_train_option_list[] = {
#define AMPC_TRAIN_OPTION(who, name, letter, value, kind, field, help) {name, value, help, letter},
#include "train_options.def"
    {NULL, NULL, NULL, 0}};

/* ---- values: each reader fills the field of its row ---- */

typedef ampc_status Reader(const char *name, const char *text, void *field);

/* Digits only: strtoull would take "-1" and " 1" too. */
static ampc_status read_whole(const char *name, const char *text, uint64_t least, uint64_t *out)
{
  char *end = NULL;
  errno = 0;
  *out = strtoull(text, &end, 10);
  bool digits = *text >= '0' && *text <= '9' && !*end;
  if (digits && !errno && *out >= least && *out <= INT64_MAX) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "--%s %s: expected a number from %llu on", name, text,
                   (unsigned long long)least);
}

static ampc_status read_count(const char *name, const char *text, void *field)
{
  uint64_t n;
  ampc_status status = read_whole(name, text, 1, &n);
  *(int64_t *)field = (int64_t)n;
  return status;
}

static ampc_status read_seed(const char *name, const char *text, void *field)
{
  return read_whole(name, text, 0, field);
}

/* Seconds from "90", "90s", "1.5m", "2h". */
static ampc_status read_time(const char *name, const char *text, void *field)
{
  char *end = NULL;
  double value = *text >= '0' && *text <= '9' ? strtod(text, &end) : 0;
  double unit = !end || !*end || strcmp(end, "s") == 0 ? 1
                : strcmp(end, "m") == 0                ? 60
                : strcmp(end, "h") == 0                ? 3600
                                                       : 0;
  double *seconds = field;
  *seconds = value * unit;
  if (isfinite(*seconds) && *seconds > 0) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "--%s %s: expected a time such as 90s, 15m or 2h", name, text);
}

static ampc_status read_device(const char *name, const char *text, void *field)
{
  *(const char **)field = text;
  if (strcmp(text, "cpu") == 0 || strcmp(text, "cuda") == 0 || strcmp(text, "auto") == 0)
    return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "--%s %s: expected cpu, cuda or auto", name, text);
}

static ampc_status read_text(const char *name, const char *text, void *field)
{
  (void)name;
  *(const char **)field = text;
  return AMPC_OK;
}

static ampc_status read_flag(const char *name, const char *text, void *field)
{
  (void)name;
  (void)text;
  *(bool *)field = true;
  return AMPC_OK;
}

/* ---- a row's value ---- */

typedef struct Target { /* beside each row of the list: what reads its value, and what that fills */
  Reader *read;
  size_t field; /* offset in ampc_train_options */
} Target;

static const Target targets[] = {
#define AMPC_TRAIN_OPTION(who, name, letter, value, kind, field, help)                             \
  {read_##kind, offsetof(ampc_train_options, field)},
#include "train_options.def"
};

ampc_status ampc_train_option(const char *name, const char *value, ampc_train_options *t)
{
  for (size_t i = 0; ampc_train_option_list[i].name; i++) {
    if (strcmp(ampc_train_option_list[i].name, name) != 0) continue;
    if (targets[i].read == read_seed) t->seed_given = true; /* no number says "not given" */
    return targets[i].read(name, value, (char *)t + targets[i].field);
  }
  return ampc_fail(AMPC_BAD_USAGE, "no option --%s", name);
}
