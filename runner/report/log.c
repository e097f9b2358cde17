/* Files of a run that the page shows: the table of --log-dir, and what amp probe has found. */
#include "report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/plan/file.h"

enum { MOST_ROWS = 1500 }; /* of the table: more are no more to see */

/* The next field of a line, without its quotes; *at moves behind it. False: the line has ended. */
static bool next_field(Arena *arena, const char **at, const char **out)
{
  Text t;
  const char *s = *at;
  if (!*s || *s == '\n' || *s == '\r') return false;
  text_init(&t, arena);
  if (*s != '"') {
    size_t n = strcspn(s, ",\n\r");
    text_add(&t, s, n);
    s += n;
  } else {
    for (s++; *s && (*s != '"' || s[1] == '"'); s++) {
      if (*s == '"') s++;
      text_add(&t, s, 1);
    }
    s += *s == '"';
  }
  *at = s + (*s == ',');
  *out = t.n ? t.at : "";
  return true;
}

/* Fields of a line as strings, or as numbers where they are; what is empty or a matrix is null. */
static json_t *line_json(Arena *arena, const char *line, bool numbers)
{
  const char *field;
  json_t *out = json_array();
  while (next_field(arena, &line, &field)) {
    char *end;
    double v = strtod(field, &end);
    bool number = end > field && !*end && v - v == 0;
    if (numbers && number)
      json_array_append_new(out, json_real(v));
    else if (numbers && (!*field || *field == '['))
      json_array_append_new(out, json_null());
    else
      json_array_append_new(out, json_string(field));
  }
  return out;
}

static const char *line_after(const char *s)
{
  s += strcspn(s, "\n");
  return *s ? s + 1 : s;
}

/* Each so-manieth row, and all of evaluations, which are few. */
static json_t *rows_json(Arena *arena, const char *text)
{
  uint32_t n = 0, i = 0;
  for (const char *s = text; *s; s = line_after(s)) n++;
  uint32_t each = n / MOST_ROWS + 1;
  json_t *out = json_array();
  for (const char *s = text; *s; s = line_after(s), i++)
    if (i % each == 0 || i + 1 == n) json_array_append_new(out, line_json(arena, s, true));
  return out;
}

json_t *report_log(const Report *r)
{
  Arena *arena = r->e.c->arena;
  uint32_t size;
  const char *why = NULL, *path = arena_printf(arena, "%s/metrics.csv", r->log_dir);
  const char *text = source_read(arena, FILE_LOG, path, &size, &why);
  if (text && strncmp(text, "step,", 5) == 0)
    return json_pack("{s:o, s:o}", "columns", line_json(arena, text, false), "rows",
                     rows_json(arena, line_after(text)));
  fprintf(stderr, "amp report: error: %s: %s\n", arena_shown(arena, path, ""),
          text ? "not a table of --log-dir" : why);
  return NULL;
}

json_t *report_probe(const Report *r)
{
  json_error_t error;
  Arena *arena = r->e.c->arena;
  const char *shown = arena_shown(arena, r->probe, "");
  json_t *out = file_note_input(FILE_LOG, r->probe)
                    ? NULL
                    : json_load_file(r->probe, JSON_REJECT_DUPLICATES, &error);
  if (out && json_is_array(json_object_get(out, "values"))) return out;
  fprintf(stderr, "amp report: error: %s: %s\n", shown,
          out ? "not what amp probe --json writes" : error.text);
  json_decref(out);
  return NULL;
}
