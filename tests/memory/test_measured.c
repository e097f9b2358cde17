/* Planned bytes equal those of a run. The memory that the process gains in a step of each block, as
 * the system counts it, must be what ampc_plan_memory returned before any allocation. A first run
 * allocates what libraries need once per process: code, tables, thread stacks. The remaining
 * difference is the objects of the libraries, some of them for each product and convolution: at
 * most OBJECTS bytes.
 *   memory_measured JOB SETTING=VALUE... */
#include <malloc.h>
#include <stdio.h>
#include "../unit/check.h"
#include "compiler/driver.h"
#include "runner/jit/jit.h"
#include "ampc_rt.h"

enum { MOST_SETTINGS = 8, OBJECTS = 1 << 20 };

/* Anonymous memory of this process: no code of programs or libraries. */
static int64_t resident(void)
{
  long long kilobytes = -1;
  char line[256];
  FILE *f = fopen("/proc/self/status", "r");
  MUST(f);
  while (fgets(line, sizeof line, f))
    if (sscanf(line, "RssAnon: %lld", &kilobytes) == 1) break;
  fclose(f);
  MUST(kilobytes >= 0);
  return kilobytes * 1024;
}

static Compile *compile(int argc, char **argv)
{
  static Assignment settings[MOST_SETTINGS];
  Options options = {
      .input = argv[1], .target = "cpu", .optimize = 2, .error_limit = 20, .settings = settings};
  for (int i = 2; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    MUST(equals && options.n_settings < MOST_SETTINGS);
    *equals = 0;
    settings[options.n_settings++] = (Assignment){argv[i], equals + 1};
  }
  Compile *c = compile_create(&options);
  MUST(compile_job(c));
  return c;
}

static ampc_runtime *run_all(const ampc_program *p)
{
  ampc_runtime *rt = NULL;
  MUST(ampc_create(p, "cpu", &rt) == AMPC_OK);
  MUST(ampc_init_params(rt, 1) == AMPC_OK);
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants; v++) {
      MUST(ampc_clear_metrics(rt, b) == AMPC_OK);
      CHECK(ampc_run_step(rt, b, v) == AMPC_OK && ampc_wait(rt) == AMPC_OK);
    }
  return rt;
}

int main(int argc, char **argv)
{
  MUST(argc > 1);
  mallopt(M_MMAP_THRESHOLD, 1 << 20); /* freed blocks of this size return to the system at once */
  mallopt(M_ARENA_MAX, 1);
  Compile *c = compile(argc, argv);
  Jit *jit = NULL;
  ampc_memory planned;
  MUST(jit_load(c, &jit) == AMPC_OK);
  MUST(ampc_plan_memory(c->program, "cpu", &planned) == AMPC_OK);
  ampc_free(run_all(c->program));
  malloc_trim(0);
  int64_t before = resident();
  ampc_runtime *rt = run_all(c->program);
  malloc_trim(0);
  ampc_memory held = ampc_memory_of(rt);
  int64_t measured = resident() - before;
  double off = (double)(measured - planned.total) / (double)planned.total;
  printf("%s: planned %lld bytes, held %lld, measured %lld: %+.2f %%\n", argv[1],
         (long long)planned.total, (long long)held.total, (long long)measured, 100 * off);
  CHECK(held.total == planned.total && held.library == planned.library);
  double bound = 0.01 * (double)planned.total;
  CHECK((double)measured < bound + (double)planned.total + OBJECTS);
  CHECK((double)measured > (double)planned.total - bound);
  ampc_free(rt);
  jit_unload(jit);
  compile_destroy(c);
  return check_done();
}
