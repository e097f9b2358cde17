/* Convolutions on CUDA as matrix products of columns. Plain arithmetic on sizes, so that compiler
 * and runtime agree. */
#pragma once
#include "ampc_plan.h"

/* Note [columns on CUDA]
 * A row of columns belongs to a pixel of y; it has, group after group, what each tap of the filter
 * (in row-major order) sees there of the group's channels, zero where that lies outside the image:
 * then weights are used as they lie. A kernel of the program makes the columns of `images` images
 * at a time, so that they fit into the workspace (im2col); `images` divides the batch, so one
 * kernel with literal sizes does. Columns have the type of the images.
 *
 * The gradient of images is a convolution, too: of dy, by weights [c, kernel.., k] that the same
 * kernel turns. A tap sees the pixel of dy that saw x by it, and nothing where a stride left x out.
 * So it is summed in f32 and rounded once by the product.
 *
 * The workspace begins with the columns; then come turned weights, then that of the product. */
typedef struct ConvColumns {
  bool direct;           /* a row of columns is the pixel itself: no kernel, no columns */
  int64_t images, parts; /* parts of so many images each */
  ampc_dtype type;
  int64_t bytes, turned; /* of columns, of turned weights: multiples of 256 */
  int64_t vector;        /* channels that a thread takes at once */
} ConvColumns;
ConvColumns ampc_conv_columns(const ampc_conv *d, bool real64);
/* The convolution whose columns these are: d, or, where d is a gradient of images, the forward
 * convolution from y to x that it is. */
ampc_conv ampc_conv_of_columns(const ampc_conv *d);
