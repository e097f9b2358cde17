/* Means and deviations of the data, which layers Standardize apply. */
#pragma once
#include "runtime/runtime.h"

/* Before the first batch of a train block: fills the buffers that hold statistics of its sources
 * (ampc_param.measured), unless they are filled already. Later calls do nothing. */
ampc_status statistics_fill(ampc_runtime *rt, const ampc_data_interface *data,
                            const ampc_batches *from, uint32_t block);
