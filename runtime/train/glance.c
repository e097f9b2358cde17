/* Reads STATE after steps without waiting for them. */
#include "train.h"

/* Takes the oldest copy. *out_there is false if it has not arrived; with `wait`, waits for it. */
static ampc_status take_first(Session *s, bool wait, bool *out_there)
{
  const Glance g = s->glances[s->first_glance];
  ampc_status status = runtime_looked(s->rt, s->first_glance, wait, s->state, out_there);
  if (status || !*out_there) return status;
  s->first_glance = (s->first_glance + 1) % LOOKS;
  s->n_glances--;
  status = check_state(s, (const ampc_state *)(const void *)s->state);
  if (!status) report_tell(s, &g);
  return status;
}

ampc_status glance_begin(Session *s, Glance g)
{
  bool there;
  ampc_status status = AMPC_OK;
  if (s->n_glances == LOOKS) status = take_first(s, true, &there); /* no step is skipped */
  if (status) return status;
  uint32_t slot = (s->first_glance + s->n_glances) % LOOKS;
  status = runtime_look(s->rt, slot);
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
