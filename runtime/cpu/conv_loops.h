/* Convolutions by loops of our own: Note [reference code] in conv_choice.c. All numbers are f32. */
#pragma once
#include "runtime/device.h"

/* Packs `filters` of all filters, from filter `first` on. Packed weights have the size of plain
 * ones but another order. `plain` points to filter `first`. */
void conv_loops_pack(const ampc_conv *d, int64_t first, int64_t filters, const float *plain,
                     float *packed);
/* Restores a gradient of `filters` filters to its own order. */
void conv_loops_unpack(const ampc_conv *d, int64_t filters, const float *packed, float *plain);
/* Computes `images` images of x and y; y has `filters` channels. */
void conv_loops_run(const ampc_conv *d, int64_t images, int64_t filters, const ConvOperands *at);
