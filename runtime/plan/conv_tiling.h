/* How the CPU divides a convolution. Only arithmetic on sizes, so that the compiler can plan the
 * workspace without the library that computes it. */
#pragma once
#include "ampc_plan.h"

/* Note [convolution workspace]
 * All sizes are bytes, multiples of 64. The buffers follow each other: `bias` and `packed` once,
 * then for each lane x, y, sum, part and scratch. A buffer of size 0 is not needed. `plain` weights
 * share the space of the lanes. Weights that are read are packed before the lanes begin; a gradient
 * is unpacked after they have ended, to the bytes after the first lane's sum. Large weights are
 * processed in slices of the output channels, and `plain` holds one slice. For a gradient each lane
 * computes whole slices, one after the other, and unpacks a slice over the part of its last share.
 * Only at run time does the library say how much scratch space it needs. The plan has as much as
 * most of its primitives need; a larger one is allocated outside WORK (library_bytes). */
typedef struct ConvTiling {
  bool product;                /* computed as a matrix product of columns: Note [columns] */
  bool direct;                 /* x itself is the matrix of columns */
  int64_t depth;               /* columns, of one group, that are made at once */
  int64_t columns;             /* bytes; `sum` and the workspace of the product follow */
  int64_t images, shares;      /* images of a share, the last may have fewer; number of shares. Of a
                                  product: images that it processes at a time */
  int64_t lanes;               /* shares computed at once; of a weight gradient: partial sums */
  bool wide_x, wide_w, wide_y; /* widened to f32 instead of read or written in place */
  int64_t slice, slices;       /* output channels of a slice; number of slices */
  int64_t bias, plain, packed; /* f32 copies; plain: of a slice of w, not packed */
  int64_t x, y;                /* f32 copies of a share */
  int64_t plain_at;            /* bytes from the first lane on */
  int64_t sum, part;           /* of a weight gradient: the lane's, one share's; of columns:
                                  resulting images, f32 */
  int64_t scratch;             /* for the library itself */
  int64_t lane, total;         /* of one lane; of all */
} ConvTiling;

ConvTiling ampc_conv_tiling(const ampc_conv *d, bool real64);
/* The product that computes one group of the convolution, with its workspace. */
ampc_gemm ampc_conv_product(const ampc_conv *d, bool real64);
/* The same for a part of the columns' depth. Forward: a part's result is f32. */
ampc_gemm ampc_conv_product_part(const ampc_conv *d, int64_t depth, bool real64);
