/* How a convolution is cut into pieces. Plain arithmetic on its sizes, so that the compiler can
 * plan the workspace without the library that computes it. */
#pragma once
#include "ampc_plan.h"

/* Note [convolution workspace]
 * All sizes are bytes, multiples of 64; the rooms lie one after the other, those of all shares
 * first: bias, packed, then once a lane: x, y, sum, part, scratch. Plain weights lie where the
 * lanes have theirs: those that are read are packed before the lanes begin, a gradient is unpacked
 * when they have ended, to behind the sum of the first. A room of size 0 is not needed. Many
 * weights are handled in slices of the output channels: the plain ones are there for one slice at a
 * time, and of a gradient each lane computes whole slices, one after the other, and unpacks a slice
 * to where it had the part of the last share. The library says only on the machine how much scratch
 * space it takes: what most of its primitives are content with is planned, a larger one lies
 * outside WORK (library_bytes). */
typedef struct ConvTiling {
  bool product;           /* computed as a matrix product of columns, see Note [columns] */
  bool direct;            /* x itself is the columns */
  int64_t depth;          /* of the columns that are laid out at once, of one group */
  int64_t columns;        /* bytes; then come `sum` and the workspace of the product */
  int64_t images, shares; /* images of a share, but the last may have fewer; number of shares; of a
                             product: how many it takes at a time */
  int64_t lanes;          /* shares computed at once; of a weight gradient: partial results */
  bool wide_x, wide_w, wide_y; /* is not read or written in place but widened to f32 */
  int64_t slice, slices;       /* output channels of a slice; number of slices */
  int64_t bias, plain, packed; /* f32 copies; plain: of a slice of w in its own order */
  int64_t x, y;                /* f32 copies of a share */
  int64_t plain_at;            /* from the first lane's room on */
  int64_t sum, part;   /* of a weight gradient: the lane's, and one share's; of columns: the images
                          that are the result in f32 */
  int64_t scratch;     /* for the library itself */
  int64_t lane, total; /* of one lane; of all */
} ConvTiling;

ConvTiling ampc_conv_tiling(const ampc_conv *d, bool real64);
/* The product that stands for one group of the convolution, its workspace set. */
ampc_gemm ampc_conv_product(const ampc_conv *d, bool real64);
/* The same for a part of the columns' depth. Forward: if it is not all, then in f32. */
ampc_gemm ampc_conv_product_part(const ampc_conv *d, int64_t depth, bool real64);
