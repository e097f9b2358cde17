/* How the CPU divides a convolution. Only arithmetic on sizes, so that the compiler can plan the
 * workspace without oneDNN, the library that computes the convolution. */
#pragma once
#include "ampc_plan.h"

/* Note [convolution workspace]
 * A share is some images that are processed together; a lane is the buffers of one thread. All
 * sizes are bytes, multiples of 64. The buffers follow each other: `bias` and `packed` once, then
 * for each lane x, y, sum, part and scratch. A buffer of size 0 is not needed. `plain` weights
 * share the space of the lanes: weights that are read are packed before the lanes begin; a gradient
 * is unpacked after the lanes have ended, to the bytes after the first lane's sum. Large weights
 * are processed in slices of the output channels, and `plain` holds one slice. For a gradient each
 * lane computes whole slices, one after the other, and unpacks a slice over the `part` of its last
 * share. Only at run time does the library report how much scratch space it needs. The plan has as
 * much as most of its primitives need; a larger one is allocated outside WORK (library_bytes). */
typedef struct ConvTiling {
  bool product;           /* computed as a matrix product of columns: Note [columns] */
  bool direct;            /* x itself is the matrix of columns */
  int64_t depth;          /* columns of one group that are made at once */
  int64_t columns;        /* bytes; `sum` and the workspace of the product follow */
  int64_t images, shares; /* images: images in a share; the last share may have fewer. Of a product:
                             images that it processes at a time. shares: number of shares */
  int64_t lanes; /* shares computed at once; of a weight gradient: number of partial sums */
  bool wide_x, wide_w, wide_y; /* converted to f32 first, instead of read or written in place */
  int64_t slice, slices;       /* slice: output channels in a slice; slices: number of slices */
  int64_t bias, plain, packed; /* f32 copies: of the bias; of a slice of w; of packed w */
  int64_t x, y;                /* sizes of f32 copies of a share */
  int64_t plain_at;            /* bytes from the first lane on */
  int64_t sum, part;   /* of a weight gradient: sum of the lane, gradient of one share; of columns:
                          sum: resulting images, f32 */
  int64_t scratch;     /* size of the library's own scratch space */
  int64_t lane, total; /* size of one lane; of all buffers */
} ConvTiling;

ConvTiling ampc_conv_tiling(const ampc_conv *d, bool real64);
/* Returns the product that computes one group of the convolution, with its workspace. */
ampc_gemm ampc_conv_product(const ampc_conv *d, bool real64);
/* Returns the product for `depth` of the columns. Forward: the result of a part is f32. */
ampc_gemm ampc_conv_product_part(const ampc_conv *d, int64_t depth, bool real64);
