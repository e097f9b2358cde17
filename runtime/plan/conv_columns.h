/* Convolutions on CUDA by kernels of the program: as matrix products of columns, or whole. Plain
 * arithmetic on sizes, so that compiler and runtime agree. */
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
/* Note [whole]
 * Where a result is a sum of few products (a stem: channels * taps <= 32) or each channel has a
 * filter to itself (depthwise), columns and a product would cost more than they do. There the
 * program's kernel convolves as it is, in one pass over the results: no columns, nothing in memory
 * (conv_whole.cu). Its arguments are what is read, weights, the result, and the bias.
 *
 * A gradient of weights is a long sum for each of few results (conv_whole_weight.cu). It is made in
 * parts, `sums` of them, by as many threads; then the parts are added up in order, `join` at a
 * time. The same kernel is launched for each pass, with the arguments that the pass has: images,
 * dy, partial sums, the result. */
enum { CONV_WHOLE_DEPTH = 32, CONV_KERNEL_ARGS = 4 };

typedef struct ConvColumns {
  bool direct;           /* a row of columns is the pixel itself: no kernel, no columns */
  int64_t images, parts; /* parts of so many images each */
  ampc_dtype type;
  int64_t bytes, turned; /* of columns, of turned weights: multiples of 256 */
  int64_t vector;        /* channels that a thread takes at once */
  bool whole;            /* Note [whole]; no columns: bytes are those of partial sums */
  int64_t each; /* neighbouring pixels of the result that a thread takes, with the same weights */
  int64_t sums, pixels; /* of a gradient of weights: parts, of so many pixels of y each */
  int64_t join, joined; /* parts that are added up in a pass of their own; 0: there is none */
} ConvColumns;
ConvColumns ampc_conv_columns(const ampc_conv *d, bool real64);
/* The convolution whose columns these are: d, or, where d is a gradient of images, the forward
 * convolution from y to x that it is. */
ampc_conv ampc_conv_of_columns(const ampc_conv *d);
bool ampc_conv_is_depthwise(const ampc_conv *d); /* a filter for each channel */
uint32_t ampc_conv_kernel_args(const ampc_conv *d);
/* Launches of the kernel for `images` images, and the arguments of one of them: some become NULL.
 */
int ampc_conv_passes(const ampc_conv *d, const ConvColumns *t);
void ampc_conv_pass(const ampc_conv *d, const ConvColumns *t, int pass,
                    void *args[CONV_KERNEL_ARGS]);
/* Elements that the kernel writes in its first pass: of columns, results, or partial sums. */
int64_t ampc_conv_kernel_elements(const ampc_conv *d, bool real64);
