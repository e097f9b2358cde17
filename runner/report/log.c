/* Reads the files of a run that the page shows: metrics.csv of --log-dir, and the JSON of amp
 * probe, amp profile and amp tune. */
#include "report.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/data/formats/fields.h"
#include "runtime/plan/file.h"

enum { MOST_ROWS = 1500 }; /* rows of the table; more rows would not be visible */

typedef struct LogTable {
  Fields in;
  json_t *lines; /* lines; the first line contains the names of columns */
} LogTable;

/* Adds a field as a number if possible, else as text. In rows, empty fields and matrices become
 * null. */
static ampc_status take_field(void *context, int64_t field)
{
  LogTable *t = context;
  const char *text = t->in.text;
  char *end;
  double v = strtod(text, &end);
  if (field == 0) json_array_append_new(t->lines, json_array());
  size_t n = json_array_size(t->lines);
  bool number = n > 1 && end > text && !*end && isfinite(v);
  bool word = n == 1 || (*text && *text != '[');
  json_array_append_new(json_array_get(t->lines, n - 1), number ? json_real(v)
                                                         : word ? json_string(text)
                                                                : json_null());
  return AMPC_OK;
}

static ampc_status read_table(const char *path, LogTable *t)
{
  int64_t fields;
  bool ended = false;
  ampc_status status = file_note_input(FILE_LOG, path);
  if (!status) status = fields_open(path, ',', 0, &t->in);
  if (status) return status;
  while (!status && !ended) status = fields_line(&t->in, take_field, t, &fields, &ended);
  stream_close(&t->in.stream);
  const char *first = json_string_value(json_array_get(json_array_get(t->lines, 0), 0));
  if (!status && (!first || strcmp(first, "step") != 0))
    status = ampc_fail(AMPC_BAD_FILE, "%s: not a table that --log-dir writes", path);
  return status;
}

/* Returns every n-th row, so that at most MOST_ROWS remain, and the last row. */
json_t *report_log(const Report *r)
{
  Arena *arena = r->e.c->arena;
  LogTable *t = arena_new(arena, LogTable);
  t->lines = json_array();
  json_t *rows = json_array(), *out = NULL;
  ampc_status status = read_table(arena_printf(arena, "%s/metrics.csv", r->log_dir), t);
  size_t n = json_array_size(t->lines), each = n / MOST_ROWS + 1;
  for (size_t i = 1; i < n; i++)
    if (i % each == 1 % each || i + 1 == n) json_array_append(rows, json_array_get(t->lines, i));
  if (status)
    fprintf(stderr, "amp report: error: %s\n", ampc_last_error());
  else
    out = json_pack("{s:O, s:O}", "columns", json_array_get(t->lines, 0), "rows", rows);
  json_decref(t->lines);
  json_decref(rows);
  return out;
}

/* Reads the JSON that a command has written. It has the list `key`. */
static json_t *read_output(const Report *r, const char *path, const char *command, const char *key)
{
  json_error_t error;
  json_t *out =
      file_note_input(FILE_LOG, path) ? NULL : json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (out && json_is_array(json_object_get(out, key))) return out;
  const char *shown = arena_shown(r->e.c->arena, path, "");
  if (out)
    fprintf(stderr, "amp report: error: %s: not the output of %s\n", shown, command);
  else
    fprintf(stderr, "amp report: error: %s: %s\n", shown, error.text);
  json_decref(out);
  return NULL;
}

json_t *report_probe(const Report *r)
{
  return read_output(r, r->probe, "amp probe --json", "values");
}

/* Returns the name of a command of the profile that the job lacks; NULL: it has all. */
static const char *strange_command(const Report *r, const json_t *profile)
{
  size_t i, k;
  json_t *block, *command;
  json_array_foreach(json_object_get(profile, "blocks"), i, block)
      json_array_foreach(json_object_get(block, "commands"), k, command)
  {
    uint32_t row = 0;
    const char *name = json_string_value(json_object_get(command, "name"));
    while (row < r->in.rows.n && name && strcmp(r->in.rows.at[row].name, name) != 0) row++;
    if (row == r->in.rows.n || !name) return name ? name : "";
  }
  return NULL;
}

/* Prints why a file is not shown. */
static json_t *refuse(const Report *r, const char *path, json_t *content)
{
  fprintf(stderr, "amp report: error: %s: %s\n", arena_shown(r->e.c->arena, path, ""),
          ampc_last_error());
  json_decref(content);
  return NULL;
}

/* Refuses the profile of another job, precision or kind of device: its times would mislead. */
json_t *report_profile(const Report *r)
{
  const char *device = "", *precision = "", *name;
  json_t *out = read_output(r, r->profile, "amp profile --json", "blocks");
  if (!out) return NULL;
  json_unpack(out, "{s:s, s:s}", "device", &device, "precision", &precision);
  bool same = (strcmp(device, "cpu") == 0) == (r->e.gpu->cpu != NULL) &&
              strcmp(precision, r->e.c->program->precision) == 0;
  if (same && !(name = strange_command(r, out))) return out;
  if (same)
    ampc_fail(AMPC_BAD_FILE, "no command `%s` in this job", name);
  else
    ampc_fail(AMPC_BAD_FILE,
              "the profile is of %s in %s, the page of %s in %s; --gpu and --set select the page's",
              device, precision, r->e.gpu->name, r->e.c->program->precision);
  return refuse(r, r->profile, out);
}

/* Whether each trial has a declaration, and a type or null for each module. */
static bool is_whole(const json_t *tune)
{
  size_t i, n = json_array_size(json_object_get(tune, "modules"));
  json_t *trial;
  json_array_foreach(json_object_get(tune, "trials"), i, trial)
  {
    if (!json_is_string(json_object_get(trial, "precision"))) return false;
    if (json_array_size(json_object_get(trial, "types")) != n) return false;
  }
  return true;
}

/* Fails if the modules of the tuning run are not those of the job. Module 0 is the train block. */
static ampc_status match_modules(const Report *r, const json_t *modules)
{
  const Graph *g = r->e.c->graph;
  size_t n = json_array_size(modules);
  for (size_t i = 1; i < n || i <= g->layers.n; i++) {
    const char *theirs = json_string_value(json_object_get(json_array_get(modules, i), "path"));
    const char *ours = i <= g->layers.n ? g->layers.at[i - 1].name : "missing";
    if (!theirs) theirs = "missing";
    if (strcmp(theirs, ours) != 0)
      return ampc_fail(AMPC_BAD_FILE,
                       "of another job: its module %zu is %s, here it is %s; run amp tune for this "
                       "job, and repeat its -D",
                       i, arena_shown(r->e.c->arena, theirs, ""), ours);
  }
  return AMPC_OK;
}

json_t *report_tune(const Report *r)
{
  json_t *out = read_output(r, r->tune, "amp tune", "trials");
  if (!out) return NULL;
  ampc_status status = match_modules(r, json_object_get(out, "modules"));
  if (!status && !is_whole(out))
    status = ampc_fail(AMPC_BAD_FILE, "damaged; delete it, and run amp tune again");
  if (!status) return out;
  return refuse(r, r->tune, out);
}
