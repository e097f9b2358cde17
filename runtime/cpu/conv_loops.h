/* Convolutions in loops of our own: Note [reference code] in conv_choice.c. All numbers are f32. */
#pragma once
#include "runtime/device.h"

/* `filters`: of all output channels, those that are looked at. Packed weights take the bytes of the
 * plain ones and lie in another order; the plain ones begin with filter `first`. */
void conv_loops_pack(const ampc_conv *d, int64_t first, int64_t filters, const float *plain,
                     float *packed);
/* A gradient of so many filters back into its own order. */
void conv_loops_unpack(const ampc_conv *d, int64_t filters, const float *packed, float *plain);
/* So many images of x and y; y has `filters` channels. */
void conv_loops_run(const ampc_conv *d, int64_t images, int64_t filters, const ConvOperands *at);
