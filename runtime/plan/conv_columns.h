/* Convolutions on CUDA as matrix products of columns. Plain arithmetic on sizes, so that compiler
 * and runtime agree. */
#pragma once
#include "ampc_plan.h"

/* Note [columns on CUDA]
 * A row of columns belongs to a pixel of y; element c taps + t of it is what tap t of the filter
 * (its taps are counted in row-major order) sees there of channel c, zero where that lies outside
 * the image: then weights are used as they lie. A kernel of the program makes the columns of
 * `images` images at a time, so that they fit into the workspace (im2col), or sums them into the
 * gradient of images (col2im); `images` divides the batch, so one kernel with literal sizes does.
 * Columns have the type of x, but those of a gradient are f32: a pixel's are summed before they are
 * rounded. The workspace begins with the columns; then comes that of the product. */
typedef struct ConvColumns {
  bool direct;           /* a row of columns is the pixel itself: no kernel, no columns */
  int64_t images, parts; /* parts of so many images each */
  ampc_dtype type;
  int64_t bytes; /* of columns, a multiple of 256 */
} ConvColumns;
ConvColumns ampc_conv_columns(const ampc_conv *d, bool real64);
