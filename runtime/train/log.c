/* --log-dir: creates the folder and writes metrics.csv in it, a row for each reported step and
 * evaluation. log_scalars.c writes the same numbers as TensorBoard events.
 *
 * A run that resumes from a checkpoint continues the same table. Rows of steps after that
 * checkpoint are removed, because the resumed run repeats these steps. If a write fails after the
 * start, a note is printed and nothing more is written to table and events; the run continues. */
#include "log.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/base/file_lock.h"
#include "common/file.h"
#include "fields.h"

#define TABLE "metrics.csv"

typedef struct Table {
  char path[PATH_MAX];
  FILE *file; /* NULL: the file could not be opened */
  int lock;   /* lock on the path, or -1 */
} Table;

/* ---- columns, and rows of an earlier run ---- */

/* Writes one field as RFC 4180 defines it: the texts of `parts` in a row, up to a NULL. The field
 * is quoted if it contains a comma, a quote or a line end. */
static void put_field(FILE *f, const char *const *parts)
{
  bool plain = true;
  for (const char *const *p = parts; *p; p++) plain = plain && !(*p)[strcspn(*p, ",\"\r\n")];
  if (!plain) fputc('"', f);
  for (const char *const *p = parts; *p; p++)
    for (const char *s = *p; *s; s++) {
      if (*s == '"') fputc('"', f);
      fputc(*s, f);
    }
  if (!plain) fputc('"', f);
}

static void put_names(const Session *s, FILE *f)
{
  const ampc_program *p = s->run.program;
  fputs("step,epoch,block", f);
  for (uint32_t i = 0; i < s->n_fields; i++) {
    fputc(',', f);
    put_field(f, (const char *[]){s->fields[i].name, NULL});
  }
  for (uint32_t i = 0; i < p->n_blocks; i++)
    for (uint32_t k = 0; k < p->blocks[i].n_metrics; k++) {
      const ampc_metric_desc *m = &p->metrics[p->blocks[i].first_metric + k];
      if (!field_is_metric(m)) continue;
      fputc(',', f);
      put_field(f, (const char *[]){p->blocks[i].name, ".", m->name, NULL});
    }
  fputc('\n', f);
}

/* Writes a matrix as one field with the list of its rows, "[[5,1],[0,4]]". */
static void put_metric(const Session *s, uint32_t metric, FILE *f)
{
  const ampc_metric_desc *m = &s->run.program->metrics[metric];
  if (metric_is_number(m)) {
    fprintf(f, "%.9g", s->run.values[metric]);
    return;
  }
  const ampc_metric *at = s->run.sums + ampc_metric_slots(s->run.program->metrics, metric);
  uint32_t n = metric_classes(m);
  for (uint32_t i = 0; i < n * n; i++)
    fprintf(f, "%s%.0f", i == 0 ? "\"[[" : i % n == 0 ? "],[" : ",", at[i].sum);
  fputs("]]\"", f);
}

/* Writes the metrics of one block. The columns of other blocks stay empty. */
static void put_metrics(const Session *s, uint32_t block, FILE *f)
{
  const ampc_program *p = s->run.program;
  for (uint32_t i = 0; i < p->n_blocks; i++)
    for (uint32_t k = 0; k < p->blocks[i].n_metrics; k++) {
      uint32_t metric = p->blocks[i].first_metric + k;
      if (!field_is_metric(&p->metrics[metric])) continue;
      fputc(',', f);
      if (i == block && s->run.known[metric]) put_metric(s, metric, f);
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

/* Returns how many bytes of the table a run keeps that resumes after `steps` steps: the rows of
 * steps up to `steps`. */
static int64_t kept_bytes(const char *text, int64_t steps)
{
  const char *row = strchr(text, '\n');
  for (row += row != NULL; row && *row; row = strchr(row, '\n') + 1)
    if (!strchr(row, '\n') || strtoll(row, NULL, 10) > steps) break;
  return row ? row - text : 0;
}

/* Records which evaluations of the current step the table already contains, so that a repeated
 * evaluation adds no second row. */
static ampc_status find_logged(Session *s, const char *text)
{
  const ampc_program *p = s->run.program;
  for (uint32_t i = 0; i < p->n_blocks; i++) {
    if (p->blocks[i].kind != AMPC_EVAL) continue;
    char *row = NULL;
    size_t size;
    FILE *f = open_memstream(&row, &size);
    if (f) {
      fprintf(f, "\n%lld,,", (long long)s->run.steps);
      put_field(f, (const char *[]){p->blocks[i].name, NULL});
      fputc(',', f);
    }
    if (!f || fclose(f) != 0) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
    if (strstr(text, row)) s->logged[i] = s->run.steps;
    free(row);
  }
  return AMPC_OK;
}

bool log_has(const Session *s, uint32_t block)
{
  return s->logged[block] == s->run.steps;
}

static ampc_status check_table(Session *s, const Table *t, int64_t *out_kept)
{
  struct stat info;
  *out_kept = 0;
  if (stat(t->path, &info) != 0 || info.st_size == 0) return AMPC_OK;
  ampc_status status = file_guard(t->path, NULL);
  if (status) return status;
  if (!s->run.options->resume)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s exists already: give --log-dir another folder, or continue that run with --resume",
        t->path);
  char *text = NULL, *names = names_text(s);
  int64_t size = 0;
  status = file_read(FILE_NO_ROLE, t->path, &text, &size);
  if (!status && !names) status = ampc_fail(AMPC_RUN_FAILED, "out of memory");
  if (!status) {
    if (strncmp(text, names, strlen(names)) != 0)
      status = ampc_fail(AMPC_BAD_FILE,
                         "%s has other columns than this run: it is of another job, or another "
                         "version or program wrote it; continue in a new folder (--log-dir)",
                         t->path);
    else
      *out_kept = kept_bytes(text, s->run.steps);
    text[*out_kept] = 0; /* begin_table() cuts off the rest */
    if (!status) status = find_logged(s, text);
  }
  free(text);
  free(names);
  return status;
}

/* Opens the table. O_NONBLOCK: opening a pipe without a reader fails at once; writes may block. */
static bool begin_table(const Session *s, Table *t, int64_t kept)
{
  int fd = open(t->path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
  bool good = fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) == 0;
  t->file = good ? fdopen(fd, "a") : NULL;
  if (!t->file) return false;
  struct stat info;
  if (fstat(fileno(t->file), &info) != 0) return false;
  if (S_ISREG(info.st_mode) && ftruncate(fileno(t->file), kept) != 0) return false;
  if (!kept) put_names(s, t->file);
  return fflush(t->file) == 0;
}

/* ---- opening and trouble ---- */

/* Creates the folder and its parents. */
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
    mkdir(part, 0777); /* if this fails, mkdir of the last folder fails, too */
    *p = '/';
  }
  if (mkdir(path, 0777) == 0) return true;
  if (errno != EEXIST || stat(path, &info) != 0) return false;
  errno = ENOTDIR;
  return S_ISDIR(info.st_mode);
}

void log_give_up(Session *s)
{
  if (!s->log_failed)
    progress_warn(&s->progress,
                  "note: cannot write the log in %s: %s; the run continues without it",
                  s->run.options->log_dir, strerror(errno));
  s->log_failed = true;
}

ampc_status log_unwritable(Session *s)
{
  if (errno != ENOSPC)
    return ampc_fail(AMPC_BAD_FILE, "cannot write %s/" TABLE ": %s", s->run.options->log_dir,
                     strerror(errno));
  log_give_up(s);
  return AMPC_OK;
}

static ampc_status open_table(Session *s, void **out)
{
  const char *folder = s->run.options->log_dir;
  if (!folder) return AMPC_OK;
  if (!make_folders(folder))
    return ampc_fail(AMPC_BAD_FILE, "cannot make the folder %s: %s", folder, strerror(errno));
  Table *t = *out = calloc(1, sizeof *t);
  if (!t) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  t->lock = -1;
  int64_t kept;
  if (snprintf(t->path, sizeof t->path, "%s/" TABLE, folder) >= PATH_MAX)
    return ampc_fail(AMPC_BAD_FILE, "cannot write in %s: %s", folder, strerror(ENAMETOOLONG));
  ampc_status status = file_lock(t->path, &t->lock);
  if (!status) status = check_table(s, t, &kept);
  if (status) return status;
  if (access(folder, W_OK | X_OK) == 0) {
    if (begin_table(s, t, kept)) {
      log_run(s);
      return AMPC_OK;
    }
    if (t->file) return log_unwritable(s);
  }
  return ampc_fail(AMPC_BAD_FILE, "cannot write %s: %s", t->path, strerror(errno));
}

/* ---- rows ---- */

bool log_due(Session *s, void *own, uint32_t block, bool must)
{
  (void)own;
  return must || s->run.steps % report_every(s, block) == 0;
}

/* Writes a row: `fields` says whether it is of a step, else of an evaluation. */
static void put_row(Session *s, FILE *f, int64_t step, const char *epoch, uint32_t block,
                    bool fields)
{
  fprintf(f, "%lld,%s,", (long long)step, epoch);
  put_field(f, (const char *[]){s->run.program->blocks[block].name, NULL});
  for (uint32_t i = 0; i < s->n_fields; i++) {
    fputc(',', f);
    if (fields && !isnan(s->fields[i].value)) fprintf(f, s->fields[i].format, s->fields[i].value);
  }
  put_metrics(s, block, f);
  if (fflush(f) != 0 || ferror(f)) log_give_up(s);
}

static void tell_step(Session *s, void *own, const Record *r)
{
  char epoch[24];
  snprintf(epoch, sizeof epoch, "%lld", r->state.epoch + 1);
  if (!s->log_failed) put_row(s, ((Table *)own)->file, r->step, epoch, r->block, true);
}

static void tell_evaluated(Session *s, void *own, uint32_t block)
{
  if (!s->log_failed && !log_has(s, block))
    put_row(s, ((Table *)own)->file, s->run.steps, "", block, false);
}

static ampc_status end_table(Session *s, void *own, ampc_status status)
{
  Table *t = own;
  if (t && t->file) fclose(t->file);
  if (t && t->lock >= 0) close(t->lock);
  free(t);
  if (status || !s->log_failed) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "the log in %s is not complete", s->run.options->log_dir);
}

const Sink table_sink = {open_table, log_due, tell_step, tell_evaluated, end_table};
