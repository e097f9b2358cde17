/* Convolutions on CUDA by the program's own kernels: as matrix products of columns, or directly.
 * Only arithmetic on sizes, so that compiler and runtime agree. */
#pragma once
#include "ampc_plan.h"

/* Note [columns on CUDA]
 * Each pixel of y has one row of columns. The row lists, group by group and tap by tap (in
 * row-major order), the values that the tap reads from the group's channels at that pixel, or 0
 * outside the image. So weights are used as they are stored. A kernel of the program makes the
 * columns of `images` images at a time (im2col), so that they fit into the workspace. `images`
 * divides the batch, so one kernel with literal sizes is enough. Columns have the type of the
 * images.
 *
 * The gradient of images is a convolution, too: of dy with weights [c, kernel.., k], which the same
 * kernel transposes. For a pixel of x, each tap reads the pixel of dy whose result used x through
 * that tap, or 0 if a stride skipped x. So the product sums the gradient in f32 and rounds it once.
 *
 * The workspace begins with the columns; transposed weights and the product's workspace follow. */
/* Note [whole]
 * Columns and a product cost more than they save if a result is a sum of few products (a stem:
 * channels * taps <= 32), or if each channel has its own filter (depthwise). Then the program's
 * kernel convolves directly, in one pass over the results, without columns in memory
 * (conv_whole.cu). Its arguments are the input, the weights, the result, and the bias.
 *
 * A gradient of such weights is a long sum for each of few results (conv_whole_weight.cu). It is
 * divided into `sums` parts, each with its own threads. Then the parts are added in order, `join`
 * at a time. The same kernel is launched for each pass, with the arguments of that pass: images,
 * dy, partial sums, the result. */
enum { CONV_WHOLE_DEPTH = 32, CONV_KERNEL_ARGS = 4 };

typedef struct ConvColumns {
  bool direct;           /* a row of columns is the pixel itself: needs no kernel and no columns */
  int64_t images, parts; /* the batch is divided into parts: images of a part; number of parts */
  ampc_dtype type;
  int64_t bytes, turned; /* bytes: of columns or partial sums; turned: of transposed weights;
                            multiples of 256 */
  int64_t vector;        /* channels that a thread processes at once */
  bool whole;            /* Note [whole]; no columns, so `bytes` counts partial sums */
  int64_t each; /* neighbouring pixels of the result that a thread computes with the same weights */
  int64_t sums, pixels; /* of a gradient of weights: number of parts; pixels of y in a part */
  int64_t join, joined; /* join: partial sums that an extra pass adds to one; joined: its results;
                           0: no such pass */
} ConvColumns;
ConvColumns ampc_conv_columns(const ampc_conv *d, bool real64);
/* Returns the convolution whose columns are made: d; for a gradient of images d from y to x. */
ampc_conv ampc_conv_of_columns(const ampc_conv *d);
bool ampc_conv_is_depthwise(const ampc_conv *d); /* each channel has its own filter */
uint32_t ampc_conv_kernel_args(const ampc_conv *d);
/* Returns the number of launches of the kernel for `images` images. ampc_conv_pass sets the
 * arguments of one launch; arguments that the launch does not use are NULL. */
int ampc_conv_passes(const ampc_conv *d, const ConvColumns *t);
void ampc_conv_pass(const ampc_conv *d, const ConvColumns *t, int pass,
                    void *args[CONV_KERNEL_ARGS]);
/* Returns how many elements (columns, results, partial sums) the kernel writes in its first
 * pass. */
int64_t ampc_conv_kernel_elements(const ampc_conv *d, bool real64);
