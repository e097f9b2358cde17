/* Decides when numbers that are not finite end a run. Without a scaler, the first such loss or
 * gradient ends it, because the scale cannot be the cause. With a scaler, an overflow lowers the
 * scale and the run continues. At the lowest scale, the scale is not the cause either: HOPELESS
 * overflowing steps in a row end the run. */
#include "lost.h"
#include <math.h>
#include <stdio.h>
#include "runtime/outside.h"

/* Steps in a row that overflow at the lowest scale until the run ends. */
enum { HOPELESS = 20 };

typedef struct Loss { /* the contents of a message */
  const ampc_state *state;
  const char *then, *last; /* "; the last checkpoint is " and its path; both "" if there is none */
  const char *culprit; /* names the sample whose data are not finite, or announces a diagnosis; or
                          NULL */
} Loss;

/* Returns the error of a run that has no scaler: it ends at the first number that is not finite.
 * The device has dropped this update and all later ones. */
static ampc_status first_one(const Loss *l)
{
  return ampc_fail(AMPC_RUN_FAILED,
                   "the loss or a gradient of step %lld is not finite; its update was dropped and "
                   "not saved%s%s; %s",
                   l->state->bad_loss, l->then, l->last,
                   l->culprit ? l->culprit : "a smaller learning rate or clip_norm may help");
}

static ampc_status many(const Loss *l)
{
  const ampc_state *state = l->state;
  bool lost = state->bad_loss != 0; /* the loss of the last step was not finite */
  const char *advice =
      lost ? "a smaller learning rate, or a look at the data of these steps, may help"
           : "a smaller learning rate, or autocast(f32) around what overflows, may help";
  return ampc_fail(AMPC_RUN_FAILED,
                   "the %s of the last %lld steps, up to step %lld, are not finite with a loss "
                   "scale of %g, which %s; their updates were skipped%s%s; %s",
                   lost ? "losses or gradients" : "gradients", -state->growth, state->step,
                   (double)state->scale, state->dynamic ? "is the lowest" : "is fixed", l->then,
                   l->last, l->culprit ? l->culprit : advice);
}

ampc_status lost_check(const ampc_program *p, const ampc_state *state, const char *last,
                       const ampc_data_interface *data, const ampc_batches *batches, bool diagnosed)
{
  char culprit[1024], when[64];
  if (state->outside.check) {
    snprintf(when, sizeof when, "step %lld: ", state->outside.step);
    return outside_check(p, &state->outside, when);
  }
  bool first = !p->scaler.on && state->bad_loss;
  if (!first && state->growth > -HOPELESS) return AMPC_OK;
  bool found =
      batches && data->find_lost && data->find_lost(batches, INFINITY, culprit, sizeof culprit);
  Loss l = {state, last ? "; the last checkpoint is " : "", last ? last : "",
            found       ? culprit
            : diagnosed ? "a diagnosis follows, which can take a minute"
                        : NULL};
  return first ? first_one(&l) : many(&l);
}
