/* Convolutions by loops of our own: Note [reference code] in conv_choice.c. All numbers are f32. */
#pragma once
#include "runtime/device.h"

/* Writes the weights of `filters` filters, from filter `first` on, to `packed`, which holds all
 * filters. Packed weights have the same size as plain ones but another order (conv_loops.c).
 * `plain` points to filter `first`. */
void conv_loops_pack(const ampc_conv *d, int64_t first, int64_t filters, const float *plain,
                     float *packed);
/* Writes the packed weight gradient of `filters` filters to `plain`, in the order of ampc_conv. */
void conv_loops_unpack(const ampc_conv *d, int64_t filters, const float *packed, float *plain);
/* Computes the convolution of `images` images of x and y; y has `filters` channels. */
void conv_loops_run(const ampc_conv *d, int64_t images, int64_t filters, const ConvOperands *at);
