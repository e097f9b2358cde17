/* amp weights --merge. */
#pragma once
#include "ampc_rt.h"
#include "compiler/base/compile.h"

/* Writes the weights of a job to `out`, with the products of its LoRA added to the weights that
 * they adapt: the file fits the same job without `adapt`. `in`: a checkpoint or an adapter of the
 * job. A frozen weight keeps the type in which the job stores it, unless `type` is a type of floats
 * (else AMPC_DTYPE_COUNT). */
ampc_status merge_adapters(Compile *c, const char *in, const char *out, ampc_dtype type,
                           bool quiet);
