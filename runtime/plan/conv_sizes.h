/* Counts that follow from the sizes of a convolution, for any number of dimensions. */
#pragma once
#include "ampc_plan.h"

static inline int64_t conv_product_of(uint32_t n, const int64_t *size)
{
  int64_t product = 1;
  for (uint32_t i = 0; i < n; i++) product *= size[i];
  return product;
}

/* Return the pixels of an image of x, of an image of y, and of a filter for one channel. */
static inline int64_t conv_in_pixels(const ampc_conv *d)
{
  return conv_product_of(d->spatial, d->in);
}
static inline int64_t conv_out_pixels(const ampc_conv *d)
{
  return conv_product_of(d->spatial, d->out);
}
static inline int64_t conv_taps(const ampc_conv *d)
{
  return conv_product_of(d->spatial, d->kernel);
}

/* Return the elements of one image of x, of one image of y, and of all weights. */
static inline int64_t conv_in_elements(const ampc_conv *d)
{
  return conv_in_pixels(d) * d->c;
}
static inline int64_t conv_out_elements(const ampc_conv *d)
{
  return conv_out_pixels(d) * d->k;
}
static inline int64_t conv_weights(const ampc_conv *d)
{
  return d->k * (d->c / d->groups) * conv_taps(d);
}

/* Whether the kernel has one tap, which reads each pixel of x once, in order. Then x itself is the
 * matrix of columns. */
static inline bool conv_is_pointwise(const ampc_conv *d)
{
  for (uint32_t i = 0; i < d->spatial; i++)
    if (d->kernel[i] != 1 || d->stride[i] != 1 || d->pad[i] != 0) return false;
  return true;
}
