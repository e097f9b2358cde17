/* :profile reports where the time of the next steps goes. The steps run on a twin, so the session
 * does not change. */
#include "commands.h"
#include "runner/profile/profile.h"

enum { USUAL_STEPS = 10 };

/* Runs steps on the next batches, of which the session reads none: feed_next seeks back. */
static ampc_status run_steps(Repl *r, Turns *t, uint32_t block, int64_t steps)
{
  Next next;
  int64_t samples, bodies = t->rt->program->blocks[block].accumulate;
  ampc_status status = feed_next(r, block, &next);
  if (!status) status = turns_next(t, t->rt);
  for (int64_t i = 0; i < turns_steps(t, (uint32_t)steps) && !status; i++) {
    if (input_interrupted()) return ampc_fail(AMPC_INTERRUPTED, "interrupted");
    status =
        ampc_run_group(t->rt, &ampc_data, next.batches, block, next.step + 1 + i, bodies, &samples);
    if (!status) status = turns_next(t, t->rt);
  }
  return status;
}

static bool profile(Repl *r, uint32_t block, int64_t steps)
{
  Inspection in;
  Measured m;
  Turns t = {.arena = r->live->c->arena, .profile = profile_create()};
  if (!t.profile) arena_out_of_memory();
  bool good = repl_check(r, live_twin(r, r->live, NULL, &t.rt)) &&
              repl_check(r, run_steps(r, &t, block, steps));
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
  return profile(r, block, steps);
}
