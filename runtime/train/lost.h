/* Decides when numbers that are not finite end a run, for the training loop and for `amp repl`. */
#pragma once
#include "ampc_rt.h"

/* Returns AMPC_OK, or an error that says why no further update can be expected. `last`: the last
 * checkpoint, or NULL. `batches`: the training data, or NULL; they are searched for numbers that
 * are not finite, so that the message can name the sample. `diagnosed`: a diagnosis will follow the
 * message, so the message gives no advice. */
ampc_status lost_check(const ampc_program *p, const ampc_state *state, const char *last,
                       const ampc_data_interface *data, const ampc_batches *batches,
                       bool diagnosed);
