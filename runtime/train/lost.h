/* When numbers that are not finite end a training: for the loop and the prompt. */
#pragma once
#include "ampc_rt.h"

/* OK, or why no update is to be expected any more. `last`: the last checkpoint, or NULL. `batches`:
 * what was trained on, where the message looks for a number that is not finite itself; or NULL. */
ampc_status lost_check(const ampc_program *p, const ampc_state *state, const char *last,
                       const ampc_data_interface *data, const ampc_batches *batches);
