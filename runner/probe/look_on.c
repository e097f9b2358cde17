#include "look_on.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "common/file.h"

enum { MOST_WORDS = 3 };

/* Appends one line of JSON for a probed step. */
static ampc_status write_log(const OnLooker *l, int64_t step)
{
  const char *path = arena_printf(l->watch.c->arena, "%s/probe.jsonl", l->log_dir);
  ampc_status status = file_guard(path, NULL);
  if (status) return status;
  json_t *value = watch_json(&l->watch);
  FILE *f = fopen(path, "a");
  bool good = value && f && json_object_set_new(value, "step", json_integer(step)) == 0 &&
              json_dumpf(value, f, JSON_COMPACT | JSON_PRESERVE_ORDER) == 0 &&
              fputc('\n', f) != EOF;
  if (f && fclose(f)) good = false;
  json_decref(value);
  return good ? AMPC_OK : ampc_fail(AMPC_BAD_FILE, "cannot write %s: %s", path, strerror(errno));
}

static const char *worst_text(const Watch *w, int64_t step)
{
  uint32_t n;
  const Finding *at = watch_findings(w, &n);
  Text text = text_new(w->c->arena);
  text_printf(&text, "probe of step %lld: ", (long long)step);
  if (!n) text_puts(&text, "nothing leaves the range of its type");
  for (uint32_t i = 0; i < n && i < MOST_WORDS; i++)
    text_printf(&text, "%s%s", i ? "\n  " : "", finding_text(w, &at[i]));
  if (n > MOST_WORDS) text_printf(&text, "\n  and %u more", n - MOST_WORDS);
  return text.at;
}

ampc_status look_on(void *context, ampc_runtime *rt, uint32_t block, int64_t step,
                    const char **out_note)
{
  OnLooker *l = context;
  bool found;
  watch_clear(&l->watch);
  ampc_status status = watch_read(&l->watch, rt, block, &found);
  if (status || !found) return status;
  *out_note = worst_text(&l->watch, step);
  return l->log_dir ? write_log(l, step) : AMPC_OK;
}
