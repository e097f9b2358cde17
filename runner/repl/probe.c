/* :probe reports how large the values of the next step are. The step runs on a twin, so the session
 * does not change. */
#include "commands.h"
#include "runner/probe/probe.h"

enum { MOST_ROWS = 12 };

static bool look(Repl *r, Compiled *p, uint32_t block, const char *path)
{
  ampc_runtime *twin = NULL;
  Watch w;
  int64_t samples;
  bool found = false;
  watch_init(&w, p->c);
  bool good = repl_check(r, live_twin(r, p, NULL, &twin)) &&
              repl_check(r, live_try_batch(r, twin, block, &samples)) &&
              repl_check(r, watch_read(&w, twin, block, &found));
  ampc_free(twin);
  if (!good) return false;
  if (!found) return repl_error(r, "this step has no probes");
  watch_print(&w, *path ? path : NULL, *path ? 0 : MOST_ROWS);
  return true;
}

bool command_probe(Repl *r, const char *arg)
{
  uint32_t block;
  if (!live_ready(r)) return false;
  if (!train_block(r, r->live->c->program, &block))
    return repl_error(r, "the program has no train block");
  Compiled *p = program_compile(r, &(Request){.probe = true});
  bool good = p && look(r, p, block, arg);
  compiled_drop(p);
  return good;
}
