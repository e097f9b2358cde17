/* Checkpoints that stay in addition to the newest one.
 *
 *   --keep-last K   job.safetensors.step400 ..              the last K that were written
 *   --keep-best K   job.safetensors.best-acc=0.8731.step468  the K best evaluations
 *
 * They are hard links to the file that was just written. So keeping one copies no data, and a crash
 * leaves only whole files. The folder itself is the list of kept files, so a resumed run counts the
 * files of the earlier run. --keep-last orders by the time of writing, not by the step, so files of
 * an earlier, longer run are removed first. "Best" means the first metric of the first eval block:
 * highest if its mode is "max", otherwise lowest. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/file.h"
#include "train.h"

enum { LONGEST = 4096 }; /* bytes of a path */

typedef struct Kept {
  char *name;
  double value; /* the larger, the earlier the file is removed */
  struct timespec written;
  long long step;
} Kept;

typedef struct KeptList {
  Kept *at;
  size_t n;
} KeptList;

/* ---- names ---- */

const ampc_block *keep_judge(const ampc_program *p)
{
  for (uint32_t i = 0; i < p->n_blocks; i++) {
    const ampc_block *b = &p->blocks[i];
    if (b->kind == AMPC_EVAL && b->n_metrics && metric_is_number(&p->metrics[b->first_metric]))
      return b;
  }
  return NULL;
}

bool keep_lower_is_better(const ampc_metric_desc *m)
{
  return ampc_mode_of(m) != AMPC_MODE_MAX;
}

bool keep_assumed(const ampc_program *p, char to[JUDGE_ROOM])
{
  const ampc_block *b = keep_judge(p);
  const char *name = b ? p->metrics[b->first_metric].name : NULL;
  if (!b || ampc_mode_of(&p->metrics[b->first_metric])) return false;
  snprintf(to, JUDGE_ROOM,
           "lower values of %s %s count as better, because the job does not say which are; "
           "if higher ones are: `metric %s = ... with mode=\"max\"`",
           b->name, name, name);
  return true;
}

/* Returns the path followed by ".step" or ".best-acc=". */
static char *prefix_of(const char *path, const char *metric)
{
  size_t size = strlen(path) + (metric ? strlen(metric) : 0) + 16;
  char *out = malloc(size);
  if (out && metric) snprintf(out, size, "%s.best-%s=", path, metric);
  if (out && !metric) snprintf(out, size, "%s.step", path);
  return out;
}

/* Reads the rest of a name: "400", or with `best` "0.8731.step468". */
static bool read_name(const char *rest, bool best, double *value, long long *step)
{
  char *end;
  *value = 0;
  if (best) {
    *value = strtod(rest, &end);
    if (end == rest || strncmp(end, ".step", 5) != 0) return false;
    rest = end + 5;
  }
  *step = strtoll(rest, &end, 10);
  return *rest >= '0' && *rest <= '9' && !*end;
}

/* ---- the kept files ---- */

/* Adds the file `name` of the folder if its name is one of ours. False: out of memory. */
static bool add(KeptList *list, const char *prefix, size_t folder, const char *name, bool best,
                bool lower)
{
  Kept k;
  size_t n = strlen(prefix) - folder;
  if (strncmp(name, prefix + folder, n) != 0 || !read_name(name + n, best, &k.value, &k.step))
    return true;
  if (best && !lower) k.value = -k.value;
  Kept *at = realloc(list->at, (list->n + 1) * sizeof *at);
  if (!at) return false;
  list->at = at;
  size_t size = folder + strlen(name) + 1;
  k.name = malloc(size);
  if (!k.name) return false;
  snprintf(k.name, size, "%.*s%s", (int)folder, prefix, name);
  struct stat info;
  if (lstat(k.name, &info) != 0 || !S_ISREG(info.st_mode)) {
    free(k.name); /* removed meanwhile, or not a checkpoint */
    return true;
  }
  k.written = info.st_mtim;
  at[list->n++] = k;
  return true;
}

/* Lists the files of this prefix in the folder. A folder that cannot be read counts as empty, so
 * nothing is deleted. */
static KeptList look(const char *path, const char *prefix, bool best, bool lower)
{
  KeptList list = {0};
  const char *slash = strrchr(path, '/');
  size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
  char *name = file_folder(path);
  DIR *d = name ? opendir(name) : NULL;
  free(name);
  for (struct dirent *e; d && (e = readdir(d));)
    if (!add(&list, prefix, folder, e->d_name, best, lower)) break;
  if (d) closedir(d);
  return list;
}

static void list_free(KeptList *list)
{
  for (size_t i = 0; i < list->n; i++) free(list->at[i].name);
  free(list->at);
}

/* Sorts better files first. Among equal values (--keep-last has no values), the later file comes
 * first. Files with equal times are of one run, so their steps decide. */
static int by_worth(const void *a, const void *b)
{
  const Kept *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  if (x->written.tv_sec != y->written.tv_sec) return x->written.tv_sec > y->written.tv_sec ? -1 : 1;
  if (x->written.tv_nsec != y->written.tv_nsec)
    return x->written.tv_nsec > y->written.tv_nsec ? -1 : 1;
  return x->step > y->step ? -1 : x->step < y->step;
}

/* ---- keeping ---- */

/* Returns how many best checkpoints to keep; with early stop, 1 by default. */
static int64_t keeps_best(const Session *s)
{
  if (s->run.options->keep_best) return s->run.options->keep_best;
  return early_stop_of(&s->run, (uint32_t)s->run.position.block) > 0;
}

/* Gives the saved file a second name. `length`: the length of the name, which may exceed `name`. If
 * the file system cannot link the file, for example because --save names a link to another one,
 * writes a second file. */
static ampc_status give_name(const Session *s, const char *name, int length)
{
  static const int unable[] = {EPERM, EMLINK, EOPNOTSUPP, ENOSYS, EXDEV};
  errno = ENAMETOOLONG;
  ampc_status status = length < LONGEST ? file_guard(name, &file_checkpoint) : AMPC_OK;
  if (status) return status;
  if (length < LONGEST && file_link(s->saved, name)) return AMPC_OK;
  for (size_t i = 0; i < sizeof unable / sizeof *unable; i++)
    if (errno == unable[i]) return ampc_checkpoint_save(s->run.rt, name, s->run.position);
  return ampc_fail(AMPC_BAD_FILE, "cannot write %s: %s", name, strerror(errno));
}

static void prune(const char *path, const char *prefix, bool best, bool lower, int64_t most)
{
  KeptList list = look(path, prefix, best, lower);
  if (list.n) qsort(list.at, list.n, sizeof *list.at, by_worth);
  for (size_t i = (size_t)most; i < list.n; i++)
    if (file_guard(list.at[i].name, &file_checkpoint) == AMPC_OK) unlink(list.at[i].name);
  list_free(&list);
}

ampc_status keep_check(const Session *s)
{
  const ampc_train_options *o = s->run.options;
  if (o->keep_best && !keep_judge(s->run.program))
    return ampc_fail(AMPC_BAD_USAGE, "--keep-best: %s has no eval block with a metric",
                     s->run.program->source);
  return AMPC_OK;
}

ampc_status keep_last(const Session *s)
{
  if (!s->run.options->keep_last || !session_leads(s)) return AMPC_OK;
  char *prefix = prefix_of(s->saved, NULL), name[LONGEST];
  if (!prefix) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  int n = snprintf(name, sizeof name, "%s%lld", prefix, (long long)s->saved_step);
  ampc_status status = give_name(s, name, n);
  if (!status) prune(s->saved, prefix, false, false, s->run.options->keep_last);
  free(prefix);
  return status;
}

/* Whether a checkpoint with this value is one of the best `most`. Smaller values are better. */
static bool is_among_best(const KeptList *list, int64_t most, double value)
{
  int64_t better = 0;
  for (size_t i = 0; i < list->n; i++) better += list->at[i].value < value;
  return better < most;
}

static ampc_status keep_if_best(Session *s, const char *prefix, double shown, bool lower)
{
  int64_t most = keeps_best(s);
  KeptList list = look(s->path, prefix, true, lower);
  bool wanted = is_among_best(&list, most, lower ? shown : -shown);
  list_free(&list);
  ampc_status status = session_choose(s, &wanted);
  if (status || !wanted) return status;
  char name[LONGEST];
  int n = snprintf(name, sizeof name, "%s%.6g.step%lld", prefix, shown, (long long)s->run.steps);
  status = session_save(s, s->path);
  if (!session_leads(s)) return session_agree(s, status);
  if (!status) status = give_name(s, name, n);
  if (!status) prune(s->path, prefix, true, lower, most);
  return session_agree(s, status);
}

void keep_begin(Session *s)
{
  char line[JUDGE_ROOM];
  bool ranks =
      (keeps_best(s) && s->path) || early_stop_of(&s->run, (uint32_t)s->run.position.block);
  if (ranks && keep_assumed(s->run.program, line)) progress_warn(&s->progress, "%s", line);
}

ampc_status keep_best(Session *s)
{
  const ampc_program *p = s->run.program;
  const ampc_block *b = keep_judge(p);
  if (!keeps_best(s) || !s->path) return AMPC_OK;
  const ampc_metric_desc *m = &p->metrics[b->first_metric];
  double value = s->run.values[b->first_metric];
  if (!isfinite(value)) return AMPC_OK;
  char *prefix = prefix_of(s->path, m->name);
  if (!prefix) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = keep_if_best(s, prefix, value, keep_lower_is_better(m));
  free(prefix);
  return status;
}
