/* Decides when numbers that are not finite end a run, for the training loop and the prompt. */
#pragma once
#include "ampc_rt.h"

/* Returns AMPC_OK, or an error that says why no further update can be expected. `last`: the last
 * checkpoint, or NULL. `batches`: the training data, which the message searches for numbers that
 * are not finite; or NULL. */
ampc_status lost_check(const ampc_program *p, const ampc_state *state, const char *last,
                       const ampc_data_interface *data, const ampc_batches *batches);
