/* Limits on memory: the user's (--memory-limit), the machine's and the container's. */
#include "memory.h"
#include "common/processors.h"
#include "compiler/cost/memory_report.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads a number of bytes from a file in /proc or /sys; 0: not known. With a `name`, the number is
 * in kB and follows the name on its line. With "", the file begins with a number of bytes. */
static int64_t read_bytes(const char *path, const char *name)
{
  FILE *f = fopen(path, "r");
  char line[128];
  long long n = 0;
  size_t skip = strlen(name);
  while (f && !n && fgets(line, sizeof line, f))
    if (strncmp(line, name, skip) == 0) sscanf(line + skip, "%lld", &n);
  if (f) fclose(f);
  return skip ? n * 1024 : n;
}

/* Returns the machine's memory. A container may be limited to less memory than its machine has. */
static int64_t machine_memory(void)
{
  int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  int64_t group = read_bytes("/sys/fs/cgroup/memory.max", ""); /* "max" reads as 0 */
  return group > 0 && group < all ? group : all;
}

/* Returns the bytes that the program needs; -1: unknown. */
static int64_t need_of(const ampc_program *p)
{
  ampc_memory m;
  return ampc_plan_memory(p, NULL, &m) ? -1 : m.total;
}

static ampc_status refuse(Compile *c, int64_t need, int64_t limit, const char *limit_name)
{
  return ampc_fail(AMPC_RUN_FAILED, "%s", memory_refusal(c, need, limit, limit_name, need_of));
}

ampc_status memory_admit(Compile *c, const char *device, bool quiet, bool verbose)
{
  ampc_memory m;
  ampc_status status = ampc_plan_memory(c->program, device, &m);
  if (status) return status;
  int64_t limit = c->options.memory_limit, all = machine_memory();
  if (limit && m.total > limit) return refuse(c, m.total, limit, "--memory-limit is");
  bool cpu = is_cpu_target(c); /* a GPU reports a lack of memory when it allocates */
  if (cpu && m.total > all) return refuse(c, m.total, all, "this machine has");
  int64_t available = read_bytes("/proc/meminfo", "MemAvailable:");
  if (cpu && available && m.total > available)
    fprintf(stderr, "amp: warning: %s needs %s of memory, only %s are free now\n",
            c->program->source, memory_text(c->arena, m.total), memory_text(c->arena, available));
  if (quiet) return AMPC_OK;
  const char *how = c->program->precision;
  unsigned threads = ampc_processors();
  if (cpu) how = arena_printf(c->arena, "%s, %u thread%s", how, threads, threads == 1 ? "" : "s");
  if (!verbose && !limit) {
    fprintf(stderr, "%s; %s\n", memory_line(c, m.library), how);
    return AMPC_OK;
  }
  Text text = text_new(c->arena);
  memory_report(c, m.library, &text);
  fprintf(stderr, "%s%s\n", text.at, how);
  return AMPC_OK;
}
