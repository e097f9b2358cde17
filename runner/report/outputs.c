/* Reads the JSON of amp probe, amp profile and amp tune. */
#include "report.h"
#include <stdio.h>
#include <string.h>
#include "runtime/plan/file.h"

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
