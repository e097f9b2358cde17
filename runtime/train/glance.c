/* Reads STATE after steps without waiting for them. */
#include "train.h"

/* Warns once about batches without a label. */
static void tell_empty(Session *s)
{
  const ampc_state *state = (const ampc_state *)(const void *)s->state;
  if (!state->empty || s->told_empty) return;
  s->told_empty = true;
  progress_warn(&s->progress,
                "warning: no element of a batch enters its loss, because all of its labels are "
                "ignored or all of its weights are 0 (number so far: %d, up to step %lld); the "
                "gradient of such a loss is 0, and the mean of the losses leaves it out",
                state->empty, state->step);
}

/* Takes the oldest copy. *out_there is false if it has not arrived; with `wait`, waits for it. */
static ampc_status take_first(Session *s, bool wait, bool *out_there)
{
  const Glance g = s->glances[s->first_glance];
  ampc_status status = runtime_looked(s->run.rt, s->first_glance, wait, s->state, out_there);
  if (status || !*out_there) return status;
  s->first_glance = (s->first_glance + 1) % LOOKS;
  s->n_glances--;
  status = check_state(s, (const ampc_state *)(const void *)s->state);
  if (status) return status;
  tell_empty(s);
  report_tell(s, &g);
  return AMPC_OK;
}

ampc_status glance_begin(Session *s, Glance g)
{
  bool there;
  ampc_status status = AMPC_OK;
  if (s->n_glances == LOOKS) status = take_first(s, true, &there); /* no step is skipped */
  if (status) return status;
  uint32_t slot = (s->first_glance + s->n_glances) % LOOKS;
  status = runtime_look(s->run.rt, slot);
  if (status) return status;
  s->glances[slot] = g;
  s->n_glances++;
  return AMPC_OK;
}

ampc_status glances_take(Session *s, bool wait)
{
  bool there = true;
  ampc_status status = AMPC_OK;
  while (s->n_glances && there && !status) status = take_first(s, wait, &there);
  return status;
}
