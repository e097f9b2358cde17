/* Reads the folders of --log-dir: metrics.csv, and run.json if there is one.
 *
 * Note [sampled columns]
 * A table may have any length, but a chart has only some hundred pixels. Each column of numbers is
 * sampled while it is read: its points fill buckets of equal size, and a bucket keeps its lowest
 * and highest point, and the mean of its points. If all buckets are full, neighbours are merged,
 * which doubles their size. So memory is bounded, and a spike of a single step survives. The first
 * and the last point are kept, too. The page smooths the means: lowest and highest points are far
 * from the middle. */
#include "report.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/data/formats/fields.h"
#include "common/file.h"

enum {
  MOST_BUCKETS = 256,   /* of a column; even */
  LEAST_BUCKETS = 16,   /* on a page with many columns */
  PAGE_BUCKETS = 12000, /* of all columns of a page */
  MOST_COLUMNS = 4096,
  MOST_BLOCKS = 256,
  MOST_SETTINGS = 1 << 20 /* bytes of run.json */
};

/* ---- points: Note [sampled columns] ---- */

typedef struct Point {
  double step, seconds, value; /* seconds: training time of the last train row up to here */
} Point;

typedef struct Bucket {
  Point low, high, mean;
  int64_t n; /* points */
} Bucket;

typedef enum Role { NUMBERS, BLOCK, SECONDS, EPOCH } Role;

typedef struct Column {
  const char *name;
  Role role;
  Bucket *at; /* NULL: the column has no numbers */
  uint32_t n;
  int64_t width;                  /* points of a full bucket */
  int64_t points, bad, first_bad; /* bad: entries that are not finite; first_bad: step */
  Point first, last;
} Column;

static void join(Bucket *to, const Bucket *from)
{
  double share = (double)from->n / (double)(to->n + from->n), rest = 1 - share; /* no overflow */
  to->mean = (Point){to->mean.step * rest + from->mean.step * share,
                     to->mean.seconds * rest + from->mean.seconds * share,
                     to->mean.value * rest + from->mean.value * share};
  if (from->low.value < to->low.value) to->low = from->low;
  if (from->high.value > to->high.value) to->high = from->high;
  to->n += from->n;
}

static void halve(Column *c)
{
  for (uint32_t i = 0; i < c->n; i += 2) {
    Bucket b = c->at[i];
    if (i + 1 < c->n) join(&b, &c->at[i + 1]);
    c->at[i / 2] = b;
  }
  c->n = (c->n + 1) / 2;
  c->width *= 2;
}

static void add_point(Arena *arena, Column *c, Point p)
{
  if (!isfinite(p.value)) {
    if (!c->bad++) c->first_bad = (int64_t)p.step;
    return;
  }
  if (!c->at) {
    c->at = arena_array(arena, Bucket, MOST_BUCKETS);
    c->width = 1;
    c->first = p;
  }
  Bucket one = {p, p, p, 1};
  bool full = c->n == 0 || c->at[c->n - 1].n >= c->width;
  if (full && c->n == MOST_BUCKETS) halve(c);
  if (full)
    c->at[c->n++] = one;
  else
    join(&c->at[c->n - 1], &one);
  c->points++;
  c->last = p;
}

/* ---- a table ---- */

typedef struct RunTable {
  Arena *arena;
  Fields in;
  VEC(Column) columns;
  VEC(const char *) blocks; /* their names, in the order of their first rows */
  /* the current row */
  Point now;             /* step and seconds */
  double clock, resumed; /* the column `seconds`, which begins at 0 when a run resumes; its sum of
                            the runs before */
  const char *block;
  double *value;
  bool *given; /* for each column */
} RunTable;

static ampc_status take_name(void *context, int64_t field)
{
  static const char *const roles[] = {[BLOCK] = "block", [SECONDS] = "seconds", [EPOCH] = "epoch"};
  RunTable *t = context;
  Column c = {.name = arena_strdup(t->arena, t->in.text)};
  if (field == MOST_COLUMNS) return fields_bad(&t->in, "more than 4096 columns");
  for (Role r = BLOCK; r <= EPOCH; r++)
    if (strcmp(c.name, roles[r]) == 0) c.role = r;
  vec_push(t->arena, &t->columns, c);
  return AMPC_OK;
}

/* Returns false if the text is no number. Decimals of up to 15 digits do not need strtod: their
 * digits and their power of ten are exact, and one division rounds correctly. This halves the time
 * for a long table. */
static bool read_number(const char *text, double *out)
{
  static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char *s = text, *dot = NULL;
  int64_t digits = 0;
  for (; (*s >= '0' && *s <= '9') || (*s == '.' && !dot); s++)
    if (*s == '.')
      dot = s;
    else if (s - text < 16)
      digits = 10 * digits + (*s - '0');
  if (!*s && s - text - (dot != NULL) <= 15 && s > text + (dot != NULL)) {
    *out = (double)digits / power[dot ? s - dot - 1 : 0];
    return true;
  }
  char *end;
  *out = strtod(text, &end);
  return end > text && !*end;
}

static void note_block(RunTable *t)
{
  uint32_t i = 0;
  while (i < t->blocks.n && strcmp(t->blocks.at[i], t->in.text) != 0) i++;
  if (i == t->blocks.n && i < MOST_BLOCKS)
    vec_push(t->arena, &t->blocks, arena_strdup(t->arena, t->in.text));
}

/* Keeps the numbers of a row until its end, because a run that is writing may not have written all
 * of it. Matrices and other texts are no numbers. */
static ampc_status take_field(void *context, int64_t field)
{
  RunTable *t = context;
  if (field >= t->columns.n) return fields_bad(&t->in, "more fields than the first line");
  double v;
  Role role = t->columns.at[field].role;
  bool number = role != BLOCK && read_number(t->in.text, &v);
  if (field == 0) {
    if (!number || !(fabs(v) < 1e15)) return fields_bad(&t->in, "the step is no number");
    t->now.step = v;
  } else if (role == BLOCK) {
    note_block(t);
  } else if (role == SECONDS && number && isfinite(v)) {
    if (v < t->clock) t->resumed += t->clock;
    t->clock = v;
    t->now.seconds = t->resumed + v;
  } else if (role == NUMBERS && number) {
    t->given[field] = true;
    t->value[field] = v;
  }
  return AMPC_OK;
}

static void end_row(RunTable *t, bool whole)
{
  for (uint32_t i = 1; i < t->columns.n; i++) {
    if (t->given[i] && whole)
      add_point(t->arena, &t->columns.at[i], (Point){t->now.step, t->now.seconds, t->value[i]});
    t->given[i] = false;
  }
}

static ampc_status read_rows(RunTable *t)
{
  int64_t fields;
  bool ended = false;
  ampc_status status = fields_line(&t->in, take_name, t, &fields, &ended);
  if (!status && (!fields || strcmp(t->columns.at[0].name, "step") != 0))
    status = ampc_fail(AMPC_BAD_FILE, "%s: not a table that --log-dir writes", t->in.stream.path);
  t->value = arena_array(t->arena, double, t->columns.n);
  t->given = arena_array(t->arena, bool, t->columns.n);
  while (!status && !ended) {
    status = fields_line(&t->in, take_field, t, &fields, &ended);
    if (fields) end_row(t, !ended);
  }
  return status;
}

/* ---- JSON for the page ---- */

static void put_point(json_t *out, const Point *p)
{
  json_array_append_new(out, json_integer((json_int_t)p->step));
  json_array_append_new(out, json_real(p->seconds));
  json_array_append_new(out, json_real(p->value));
}

/* Returns {name, count, bad, first_bad, points: [step, seconds, value, step, ..], means}: the means
 * of buckets, like points; empty if there are no others than the points. */
static json_t *column_json(Arena *arena, Column *c, uint32_t most)
{
  json_t *points = json_array(), *means = json_array();
  while (c->n > most) halve(c);
  for (uint32_t i = 0; i < c->n; i++) {
    const Bucket *b = &c->at[i];
    bool low_first = b->low.step <= b->high.step;
    const Point *a = low_first ? &b->low : &b->high, *z = low_first ? &b->high : &b->low;
    if (i == 0 && a->step != c->first.step) put_point(points, &c->first);
    put_point(points, a);
    if (z->step != a->step) put_point(points, z);
    if (c->width > 1) put_point(means, &b->mean);
    if (i + 1 == c->n && z->step != c->last.step) put_point(points, &c->last);
  }
  return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o}", "name", arena_shown(arena, c->name, ""),
                   "count", (json_int_t)c->points, "bad", (json_int_t)c->bad, "first_bad",
                   (json_int_t)c->first_bad, "points", points, "means", means);
}

/* Reads run.json. *out becomes null if the folder has none. */
static ampc_status read_settings(const char *path, json_t **out)
{
  char *text = NULL;
  int64_t size = 0;
  json_error_t error;
  *out = json_null();
  if (access(path, F_OK) != 0) return AMPC_OK;
  const char *why = file_read_any(FILE_LOG, path, MOST_SETTINGS, &text, &size);
  json_t *run = why ? NULL : json_loadb(text, (size_t)size, 0, &error);
  free(text);
  if (json_is_object(run)) {
    *out = run;
    return AMPC_OK;
  }
  if (!why) why = run ? "no JSON object" : error.text;
  json_decref(run);
  return ampc_fail(AMPC_BAD_FILE,
                   "%s: not the settings of a run: %s; remove the file to show the curves alone",
                   path, why);
}

static json_t *log_json(RunTable *t, const char *folder, json_t *run, uint32_t n_logs)
{
  json_t *blocks = json_array(), *columns = json_array();
  uint32_t most = PAGE_BUCKETS / n_logs / t->columns.n;
  if (most > MOST_BUCKETS) most = MOST_BUCKETS;
  if (most < LEAST_BUCKETS) most = LEAST_BUCKETS;
  for (uint32_t i = 0; i < t->blocks.n; i++)
    json_array_append_new(blocks, json_string(arena_shown(t->arena, t->blocks.at[i], "")));
  for (uint32_t i = 0; i < t->columns.n; i++)
    if (t->columns.at[i].points || t->columns.at[i].bad)
      json_array_append_new(columns, column_json(t->arena, &t->columns.at[i], most));
  return json_pack("{s:s, s:o, s:o, s:o}", "folder", arena_shown(t->arena, folder, ""), "run", run,
                   "blocks", blocks, "columns", columns);
}

static json_t *read_log(Arena *arena, const char *folder, uint32_t n_logs)
{
  RunTable *t = arena_new(arena, RunTable);
  *t = (RunTable){.arena = arena};
  json_t *run = NULL;
  const char *path = arena_printf(arena, "%s/metrics.csv", folder);
  ampc_status status = file_note_input(FILE_LOG, path);
  if (access(path, F_OK) != 0)
    status = ampc_fail(AMPC_BAD_FILE,
                       "cannot open %s: %s; --log takes a folder that amp train --log-dir wrote",
                       path, strerror(errno));
  if (!status) status = fields_open(path, ',', 0, &t->in);
  if (!status) {
    status = read_rows(t);
    stream_close(&t->in.stream);
  }
  if (!status) status = read_settings(arena_printf(arena, "%s/run.json", folder), &run);
  if (!status) return log_json(t, folder, run, n_logs);
  fprintf(stderr, "amp report: error: %s\n", ampc_last_error());
  return NULL;
}

json_t *report_logs(const Report *r)
{
  json_t *out = json_array();
  for (uint32_t i = 0; i < r->n_logs && out; i++) {
    ArenaMark mark = arena_mark(r->arena);
    json_t *log = read_log(r->arena, r->logs[i], r->n_logs);
    arena_release(r->arena, mark);
    if (json_array_append_new(out, log) == 0) continue;
    json_decref(out);
    out = NULL;
  }
  return out;
}
