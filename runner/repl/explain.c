/* :explain prints the output of ampc --explain for the session's program, or for one line of it. */
#include "commands.h"
#include "compiler/cost/cpu.h"
#include "compiler/explain/explain.h"
#include "common/number.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Returns the processor that runs the session. A GPU has a name only once the program runs. NULL
 * after a message. */
static const Gpu *own_device(Repl *r, Arena *arena)
{
  if (strcmp(r->options.target, "cpu") == 0) return cpu_measure(arena);
  if (!live_ready(r)) return NULL;
  const Gpu *gpu = gpu_of_device(ampc_device_name(r->rt));
  if (!gpu)
    repl_error(r, "the table of GPUs lacks %s; name another one, as in :explain h200",
               ampc_device_name(r->rt));
  return gpu;
}

/* Reads "[DEVICE] [LINE]"; line 0: none. NULL after a message. */
static const Gpu *read_device(Repl *r, Arena *arena, const char *arg, int64_t *line)
{
  size_t n = strcspn(arg, " \t");
  const char *name = arena_strndup(arena, arg, n), *rest = arg + n + strspn(arg + n, " \t");
  const Gpu *gpu = gpu_find(name);
  bool cpu = strcmp(name, "cpu") == 0, named = gpu || cpu;
  *line = 0;
  if (!named) rest = arg;
  if (*rest && !ampc_read_count(rest, 1, INT_MAX, line)) {
    repl_error(r, ":explain takes a device (cpu, %s) and a line of the job, got %s",
               gpu_names(arena), arg);
    return NULL;
  }
  return gpu ? gpu : cpu ? cpu_measure(arena) : own_device(r, arena);
}

bool command_explain(Repl *r, const char *arg)
{
  int64_t line;
  Explanation e;
  Arena *arena = arena_create();
  const Gpu *gpu = read_device(r, arena, arg, &line);
  Compiled *p = gpu ? program_compile(r, &(Request){.target = gpu->arch}) : NULL;
  bool any = false;
  if (p) {
    Request against = {.target = gpu->arch, .precision = explain_against(p->c, gpu), .quiet = true};
    Compiled *other = program_compile(r, &against);
    explain_gather(p->c, gpu, other ? other->c : NULL, &e);
    compiled_drop(other);
    Text text = text_new(arena);
    any = !line || explain_line(&e, (uint32_t)line, &text);
    if (!line) explain_text(&e, &text);
    fputs(text.at, stdout);
    if (!any) repl_error(r, "nothing is computed at line %lld", (long long)line);
  }
  compiled_drop(p);
  arena_destroy(arena);
  return any;
}
