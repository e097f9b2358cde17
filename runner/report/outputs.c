/* Reads the JSON of amp probe, amp profile and amp tune. */
#include "report.h"
#include <stdio.h>
#include <string.h>
#include "runner/job/json.h"

/* ---- what the page reads of a file ---- */

/* An example of each file: an object has at least these keys, a list has such elements. A key or
 * text that ends in `?` may be missing or null. The page's scripts rely on it. */
static const char probe_like[] =
    "{'steps': 0, 'findings?': [{'text': '', 'help?': ''}], 'values': [{'kind': '', 'name': '', "
    "'type': '', 'line': 0, 'elements': 0, 'nan': 0, 'infinite': 0, 'greatest?': 0, 'least?': 0, "
    "'f16': {'over': 0, 'under': 0}, 'exponents': [[0]]}]}";
#define TIMES "'measured_us': 0, 'predicted_us?': 0, 'limit_us?': 0, 'idle_us?': 0"
static const char profile_like[] =
    "{'device': '', 'precision': '', 'threads?': 0, 'predicted_for?': '', 'blocks': [{'name': '', "
    "'train': true, 'batch': 0, 'runs': 0, 'measured_us': 0, 'loader_us': 0, 'upload_us': 0, "
    "'by_work': [{'work': '', " TIMES "}], 'by_layer': [{'layer?': '', " TIMES "}], "
    "'by_line': [{'line': 0, 'source?': '', " TIMES "}], 'commands': [{'name': '', " TIMES "}]}]}";
static const char tune_like[] =
    "{'job': '', 'gpu': '', 'steps': 0, 'bound?': 0, 'chosen?': '', "
    "'modules': [{'path': '', 'type': '', 'parent': 0, 'own': true, 'greatest?': 0, 'least?': 0, "
    "'steps_over?': 0, 'under?': 0}], 'trials': [{'precision': '', 'types': ['?'], "
    "'predicted_us?': 0, "
    "'measured_us?': 0, 'gradient?': 0, 'loss?': 0, 'scale?': 0}], "
    "'pins?': [{'path': '', 'type': '', 'reason': '', 'us?': 0}]}";

static const char *kind_of(const json_t *v)
{
  return json_is_object(v)    ? "an object"
         : json_is_array(v)   ? "a list"
         : json_is_string(v)  ? "text"
         : json_is_number(v)  ? "a number"
         : json_is_boolean(v) ? "true or false"
                              : "null";
}

/* Returns the first place that differs from the example, "values[2].line is text, not a number";
 * NULL: none does. The example, and so the recursion, is a few levels deep. */
static const char *misfit(Arena *a, const char *place, json_t *like, json_t *v)
{
  const char *key, *wrong = NULL;
  json_t *each;
  size_t i;
  if (!v) return arena_printf(a, "%s is missing", place);
  if (json_is_null(v) && json_is_string(like) && *json_string_value(like)) return NULL;
  if (strcmp(kind_of(like), kind_of(v)) != 0)
    return arena_printf(a, "%s is %s, not %s", *place ? place : "it", kind_of(v), kind_of(like));
  for (i = 0; i < json_array_size(v) && !wrong; i++) {
    ArenaMark mark = arena_mark(a);
    const char *at = arena_printf(a, "%s[%zu]", place, i);
    wrong = misfit(a, at, json_array_get(like, 0), json_array_get(v, i));
    if (!wrong) arena_release(a, mark);
  }
  json_object_foreach(like, key, each)
  {
    size_t n = strcspn(key, "?");
    const char *name = arena_printf(a, "%.*s", (int)n, key);
    json_t *has = json_object_get(v, name);
    if (wrong || (key[n] && (!has || json_is_null(has)))) continue;
    wrong = misfit(a, arena_printf(a, "%s%s%s", place, *place ? "." : "", name), each, has);
  }
  return wrong;
}

/* Reads the JSON that a command has written. The page reads what is in `example`. */
static json_t *read_output(const Report *r, const char *path, const char *command,
                           const char *example)
{
  Arena *a = r->e.c->arena;
  char *text = arena_strdup(a, example);
  for (char *c = text; *c; c++)
    if (*c == '\'') *c = '"';
  json_t *out, *like = json_loads(text, 0, NULL);
  ampc_status status = json_read(FILE_LOG, path, &out);
  const char *wrong = status ? NULL : misfit(a, "", like, out);
  json_decref(like);
  if (wrong)
    fprintf(stderr, "amp report: error: %s: not the output of %s: %s\n", arena_shown(a, path, ""),
            command, arena_shown(a, wrong, ""));
  else if (status)
    fprintf(stderr, "amp report: error: %s\n", arena_shown(a, ampc_last_error(), ""));
  else
    return out;
  json_decref(out);
  return NULL;
}

/* ---- the files ---- */

json_t *report_probe(const Report *r)
{
  return read_output(r, r->probe, "amp probe --json", probe_like);
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
    while (row < r->in.rows.n && name && strcmp(r->in.rows.at[row].facts.name, name) != 0) row++;
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
  json_t *out = read_output(r, r->profile, "amp profile --json", profile_like);
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

/* Whether each trial has a type or null for each module. */
static bool is_whole(const json_t *tune)
{
  size_t i, n = json_array_size(json_object_get(tune, "modules"));
  json_t *trial;
  json_array_foreach(json_object_get(tune, "trials"), i, trial)
  {
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
  json_t *out = read_output(r, r->tune, "amp tune", tune_like);
  if (!out) return NULL;
  ampc_status status = match_modules(r, json_object_get(out, "modules"));
  if (!status && !is_whole(out))
    status = ampc_fail(AMPC_BAD_FILE, "damaged; delete it, and run amp tune again");
  if (!status) return out;
  return refuse(r, r->tune, out);
}
