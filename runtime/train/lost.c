/* Without a scaler a loss or gradient that is not finite ends the run: nothing but the numbers
 * themselves can be wrong. With one it lowers the scale, and the run goes on; where the scale
 * cannot go down, it is not what is wrong, and after some such steps in a row the run ends as well.
 */
#include "lost.h"

/* Steps in a row at the lowest scale after which no update is to be expected. */
enum { HOPELESS = 20 };

/* The step itself has dropped this update and all later ones. */
static ampc_status first_one(const ampc_state *state, const char *then, const char *last)
{
  return ampc_fail(AMPC_RUN_FAILED,
                   "the loss or a gradient of step %lld is not finite; its update was dropped and "
                   "not saved%s%s; a smaller learning rate or clip_norm may help",
                   state->bad_loss, then, last);
}

ampc_status lost_check(const ampc_program *p, const ampc_state *state, const char *last)
{
  const char *then = last ? "; the last checkpoint is " : "";
  if (!last) last = "";
  if (!p->scaler.on && state->bad_loss) return first_one(state, then, last);
  if (state->growth > -HOPELESS) return AMPC_OK;
  bool lost = state->bad_loss != 0; /* that of the last step */
  return ampc_fail(AMPC_RUN_FAILED,
                   "the %s of the last %lld steps, up to step %lld, are not finite with a loss "
                   "scale of %g, which %s; their updates were skipped%s%s; a smaller learning "
                   "rate%s may help",
                   lost ? "losses or gradients" : "gradients", -state->growth, state->body,
                   (double)state->scale, state->dynamic ? "is the lowest" : "is fixed", then, last,
                   lost ? ", or a look at the data of these steps,"
                        : ", or autocast(f32) around what overflows,");
}
