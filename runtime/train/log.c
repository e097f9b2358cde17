/* --log-dir: metrics.csv, a row for each told step and evaluation, and the same numbers as
 * TensorBoard events.
 *
 * A run that goes on from a checkpoint goes on in the same table: rows of steps that the checkpoint
 * does not know are of a run that was lost, and go. Whatever fails after the start ends the log
 * with one note, never the run. */
#include "log.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "train.h"

struct Log {
  char path[PATH_MAX]; /* of the table */
  FILE *table;         /* NULL after trouble */
  Events events;
  bool failed;
};

/* ---- the table --------------------------------------------------------------------------------
 */

static void put_names(const Session *s, FILE *f)
{
  const ampc_program *p = s->program;
  fprintf(f, "step,epoch,block,seconds,samples_per_second,scale,skipped");
  for (uint32_t i = 0; i < p->n_optimizers; i++) fprintf(f, ",lr.%s", p->optimizers[i].name);
  for (uint32_t i = 0; i < p->n_blocks; i++)
    for (uint32_t k = 0; k < p->blocks[i].n_metrics; k++)
      fprintf(f, ",%s.%s", p->blocks[i].name, p->metrics[p->blocks[i].first_metric + k].name);
  fputc('\n', f);
}

/* The metrics of one block; the columns of the others stay empty. */
static void put_metrics(const Session *s, uint32_t block, FILE *f)
{
  const ampc_program *p = s->program;
  for (uint32_t i = 0; i < p->n_blocks; i++)
    for (uint32_t k = 0; k < p->blocks[i].n_metrics; k++) {
      fputc(',', f);
      if (i == block) fprintf(f, "%.9g", s->values[p->blocks[i].first_metric + k]);
    }
  fputc('\n', f);
}

static char *names_text(const Session *s)
{
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return NULL;
  put_names(s, f);
  return fclose(f) == 0 ? text : NULL;
}

/* Bytes of the table that a run which goes on at this step keeps: rows of steps up to it. */
static int64_t kept_bytes(const char *text, int64_t steps)
{
  const char *row = strchr(text, '\n');
  for (row += row != NULL; row && *row; row = strchr(row, '\n') + 1)
    if (!strchr(row, '\n') || strtoll(row, NULL, 10) > steps) break;
  return row ? row - text : 0;
}

static ampc_status check_table(const Session *s, const Log *log, int64_t *out_kept)
{
  struct stat info;
  *out_kept = 0;
  if (stat(log->path, &info) != 0 || info.st_size == 0) return AMPC_OK;
  if (!s->options->resume)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is there already: give --log-dir another folder, or go on with --resume",
                     log->path);
  char *text = NULL, *names = names_text(s);
  int64_t size = 0;
  ampc_status status = file_read(log->path, &text, &size);
  if (!status && !names) status = ampc_fail(AMPC_RUN_FAILED, "out of memory");
  if (!status) {
    text[size] = 0;
    if (strncmp(text, names, strlen(names)) != 0)
      status = ampc_fail(AMPC_BAD_FILE, "%s is of another job: its columns are others", log->path);
    else
      *out_kept = kept_bytes(text, s->steps);
  }
  free(text);
  free(names);
  return status;
}

static bool open_table(const Session *s, Log *log, int64_t kept)
{
  log->table = fopen(log->path, "a");
  if (!log->table) return false;
  struct stat info;
  if (fstat(fileno(log->table), &info) != 0) return false;
  if (S_ISREG(info.st_mode) && ftruncate(fileno(log->table), kept) != 0) return false;
  if (!kept) put_names(s, log->table);
  return fflush(log->table) == 0;
}

/* ---- opening and trouble ----------------------------------------------------------------------
 */

/* The folder and those above it. */
static bool make_folders(const char *path)
{
  char part[PATH_MAX];
  struct stat info;
  if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) {
    errno = ENAMETOOLONG;
    return false;
  }
  for (char *p = part + 1; (p = strchr(p, '/')); p++) {
    *p = 0;
    mkdir(part, 0777); /* a failure shows at the last one */
    *p = '/';
  }
  if (mkdir(path, 0777) == 0) return true;
  if (errno != EEXIST || stat(path, &info) != 0) return false;
  errno = ENOTDIR;
  return S_ISDIR(info.st_mode);
}

static void give_up(Session *s)
{
  Log *log = s->log;
  if (!log->failed)
    progress_warn(&s->progress, "note: cannot write the log in %s: %s; the run goes on without",
                  s->options->log_dir, strerror(errno));
  log->failed = true;
}

ampc_status log_open(Session *s)
{
  const char *folder = s->options->log_dir;
  if (!make_folders(folder))
    return ampc_fail(AMPC_BAD_FILE, "cannot make the folder %s: %s", folder, strerror(errno));
  Log *log = calloc(1, sizeof *log);
  if (!log) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  s->log = log;
  log->events.fd = -1;
  int64_t kept;
  if (snprintf(log->path, sizeof log->path, "%s/metrics.csv", folder) >= PATH_MAX)
    return ampc_fail(AMPC_BAD_FILE, "cannot write in %s: %s", folder, strerror(ENAMETOOLONG));
  ampc_status status = check_table(s, log, &kept);
  if (status) return status;
  bool reachable = access(folder, W_OK | X_OK) == 0;
  if (reachable && open_table(s, log, kept) && events_open(&log->events, folder, s->steps))
    return AMPC_OK;
  if (!reachable || !log->table || errno != ENOSPC)
    return ampc_fail(AMPC_BAD_FILE, "cannot write %s: %s", log->path, strerror(errno));
  give_up(s); /* a disk that is full now may not be so at the next checkpoint */
  return AMPC_OK;
}

const char *log_trouble(const Log *log)
{
  return log->failed ? log->path : NULL;
}

void log_close(Log *log)
{
  if (!log) return;
  if (log->table) fclose(log->table);
  events_close(&log->events);
  free(log);
}

/* ---- rows and events --------------------------------------------------------------------------
 */

__attribute__((format(printf, 5, 6))) static bool put_scalar(Session *s, int64_t step, double value,
                                                             bool good, const char *fmt, ...)
{
  char tag[256];
  va_list args;
  va_start(args, fmt);
  vsnprintf(tag, sizeof tag, fmt, args);
  va_end(args);
  return good && events_scalar(&s->log->events, step, tag, value);
}

static bool put_metric_events(Session *s, uint32_t block, int64_t step, bool good)
{
  const ampc_block *b = &s->program->blocks[block];
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++)
    good = put_scalar(s, step, s->values[i], good, "%s/%s", b->name, s->program->metrics[i].name);
  return good;
}

void log_step(Session *s, uint32_t block, const Record *r)
{
  const ampc_program *p = s->program;
  FILE *f = s->log->table;
  if (s->log->failed) return;
  fprintf(f, "%lld,%lld,%s,%.3f,%.1f,%.9g,%lld", (long long)r->step, r->state.epoch + 1,
          p->blocks[block].name, r->seconds, r->rate, (double)r->state.scale, r->state.skipped);
  for (uint32_t i = 0; i < p->n_optimizers; i++) fprintf(f, ",%.9g", s->rates[i]);
  put_metrics(s, block, f);
  bool good = fflush(f) == 0 && !ferror(f);
  good = put_metric_events(s, block, r->step, good);
  for (uint32_t i = 0; i < p->n_optimizers; i++)
    good = put_scalar(s, r->step, s->rates[i], good, "lr/%s", p->optimizers[i].name);
  good = put_scalar(s, r->step, (double)r->state.scale, good, "scaler/scale");
  good = put_scalar(s, r->step, (double)r->state.skipped, good, "scaler/skipped");
  good = put_scalar(s, r->step, r->rate, good, "speed/samples_per_second");
  if (!good) give_up(s);
}

void log_evaluated(Session *s, uint32_t block)
{
  FILE *f = s->log->table;
  if (s->log->failed) return;
  fprintf(f, "%lld,,%s,,,,", (long long)s->steps, s->program->blocks[block].name);
  for (uint32_t i = 0; i < s->program->n_optimizers; i++) fputc(',', f);
  put_metrics(s, block, f);
  bool good = fflush(f) == 0 && !ferror(f);
  if (!put_metric_events(s, block, s->steps, good)) give_up(s);
}
