/* Reads the values of the training loop's options. Their list is train_options.def. */
#include "train_options.h"
#include <stddef.h>
#include <string.h>
#include "runtime/device.h"
#include "common/file.h"
#include "common/number.h"
#include "runtime/ranks/ranks.h"

const ampc_option ampc_train_option_list[] = {
#define AMPC_TRAIN_OPTION(who, name, letter, value, kind, field, help) {name, value, help, letter},
#include "train_options.def"
    {NULL, NULL, NULL, 0}};

/* ---- readers: each fills the field of its row ---- */

typedef ampc_status Reader(const char *name, const char *text, void *field);

static ampc_status read_whole(const char *name, const char *text, int64_t least, int64_t most,
                              int64_t *out)
{
  char range[AMPC_RANGE_ROOM];
  if (ampc_read_count(text, least, most, out)) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "--%s %s: expected %s", name, text,
                   ampc_range_text(range, least, most));
}

static ampc_status read_count(const char *name, const char *text, void *field)
{
  return read_whole(name, text, 1, AMPC_MOST_STEPS, field);
}

/* Reads --steps. With 0 the weights are saved and evaluated as they are. */
static ampc_status read_steps(const char *name, const char *text, void *field)
{
  return read_whole(name, text, 0, AMPC_MOST_STEPS, field);
}

static ampc_status read_seed(const char *name, const char *text, void *field)
{
  int64_t seed = 0;
  ampc_status status = read_whole(name, text, 0, INT64_MAX, &seed);
  *(uint64_t *)field = (uint64_t)seed;
  return status;
}

/* Reads "90", "90s", "1.5m" or "2h" as seconds; at most 100 years. */
static ampc_status read_time(const char *name, const char *text, void *field)
{
  enum { MOST_ROOM = 32 };
  static const double most = 100.0 * 366 * 24 * 3600;
  size_t size = strlen(text);
  char unit = size ? text[size - 1] : 0, number[MOST_ROOM] = "";
  double each = unit == 'm' ? 60 : unit == 'h' ? 3600 : 1, *seconds = field;
  if (unit == 's' || each > 1) size--;
  if (size < MOST_ROOM) memcpy(number, text, size);
  bool good = ampc_read_real(number, seconds);
  *seconds *= each;
  if (good && *seconds > 0 && *seconds <= most) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE,
                   "--%s %s: expected a time such as 90s, 15m or 2h, at most 100 years", name,
                   text);
}

static ampc_status read_device(const char *name, const char *text, void *field)
{
  DeviceWish wish;
  *(const char **)field = text;
  if (device_read(text, &wish)) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "--%s %s: expected " DEVICE_NAMES, name, text);
}

static ampc_status read_text(const char *name, const char *text, void *field)
{
  *(const char **)field = text;
  return *text ? AMPC_OK
               : ampc_fail(AMPC_BAD_USAGE, "--%s: the path is empty; leave the option out", name);
}

static ampc_status read_flag(const char *name, const char *text, void *field)
{
  (void)name;
  (void)text;
  *(bool *)field = true;
  return AMPC_OK;
}

/* Reads --no-cudnn, for the whole process: `amp repl` also creates runtimes to compute values. */
static ampc_status read_process(const char *name, const char *text, void *field)
{
  (void)name, (void)text, (void)field;
  ampc_use_cudnn(false);
  return AMPC_OK;
}

static ampc_status read_force(const char *name, const char *text, void *field)
{
  (void)name, (void)text, (void)field;
  file_force(true);
  return AMPC_OK;
}

/* Reads --rank-timeout, for the whole process. */
static ampc_status read_patience(const char *name, const char *text, void *field)
{
  (void)field;
  double seconds = 0;
  ampc_status status = read_time(name, text, &seconds);
  if (!status) ranks_patience(seconds);
  return status;
}

/* Reads --data-threads, for the whole process: `amp repl` also opens data to compute values. */
static ampc_status read_threads(const char *name, const char *text, void *field)
{
  (void)field;
  int64_t n;
  ampc_status status = read_whole(name, text, 1, AMPC_MOST_DATA_THREADS, &n);
  if (!status) ampc_use_data_threads(n);
  return status;
}

/* ---- a row's value ---- */

typedef struct Target { /* for each row of the list: its reader and its field */
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
    if (targets[i].read == read_seed) t->seed_given = true; /* 0 is a seed, too */
    if (targets[i].read == read_steps) t->steps_given = true;
    return targets[i].read(name, value, (char *)t + targets[i].field);
  }
  return ampc_fail(AMPC_BAD_USAGE, "no option --%s", name);
}

double ampc_train_option_number(size_t i, const ampc_train_options *t)
{
  const void *field = (const char *)t + targets[i].field;
  if (targets[i].read == read_time) return *(const double *)field;
  if (targets[i].read != read_count && targets[i].read != read_steps) return 0;
  return (double)*(const int64_t *)field;
}
