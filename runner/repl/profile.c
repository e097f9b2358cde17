/* :profile reports where the time of the next steps goes. The steps run on a twin, so the session
 * does not change. */
#include "commands.h"
#include "runner/profile/profile.h"

enum { USUAL_STEPS = 10 };

/* Runs the next steps on the twin, without evaluations. */
static ampc_status run_steps(Repl *r, Turns *t, int64_t steps)
{
  Run run;
  ampc_status status = feed_run(r, t->rt, &run);
  if (!status) status = run_start(&run);
  uint32_t block = (uint32_t)run.position.block;
  if (!status) status = run_enter(&run, block, run.courses[block].first);
  if (!status) status = turns_next(t, t->rt);
  for (int64_t i = 0; i < turns_steps(t, (uint32_t)steps) && !status; i++) {
    status = input_interrupted() ? ampc_fail(AMPC_INTERRUPTED, "interrupted") : run_step(&run);
    if (!status) status = turns_next(t, t->rt);
  }
  run_close(&run);
  return status;
}

static bool profile(Repl *r, int64_t steps)
{
  Inspection in;
  Measured m;
  Turns t = {.arena = r->live->c->arena, .profile = profile_create()};
  if (!t.profile) arena_out_of_memory();
  bool good =
      repl_check(r, live_twin(r, r->live, NULL, &t.rt)) && repl_check(r, run_steps(r, &t, steps));
  if (good && profile_lost(t.profile)) good = repl_error(r, "out of memory for times");
  if (good) {
    inspect_rows(r->live->c, &in);
    profile_finish(&t, &in, &m);
    profile_print(&m);
  }
  ampc_free(t.rt);
  profile_free(t.profile);
  return good;
}

bool command_profile(Repl *r, const char *arg)
{
  uint32_t block;
  int64_t steps = USUAL_STEPS;
  if (*arg && !steps_read(r, arg, INT32_MAX, &steps)) return false;
  if (!live_ready(r)) return false;
  if (!train_block(r, r->live->c->program, &block))
    return repl_error(r, "the program has no train block");
  return profile(r, steps);
}
