/* Sizes of columns: see conv_columns.h. Part of both libraries. */
#include "conv_columns.h"
#include "conv_sizes.h"

enum { COLUMN_BYTES = 64 << 20, MIB = 1 << 20 };

/* The greatest divisor of n that is at most `most`; at least 1. */
static int64_t divisor(int64_t n, int64_t most)
{
  int64_t best = 1;
  for (int64_t i = 1; i * i <= n; i++) {
    if (n % i) continue;
    if (i <= most) best = i > best ? i : best;
    if (n / i <= most) best = n / i > best ? n / i : best;
  }
  return best;
}

ConvColumns ampc_conv_columns(const ampc_conv *d, bool real64)
{
  ConvColumns t = {.direct = conv_is_pointwise(d), .images = d->n, .parts = 1, .type = d->x_type};
  if (d->kind == AMPC_CONV_DATA) t.type = AMPC_F32;
  if (t.direct || d->n == 0) return t;
  int64_t size = real64 ? (int64_t)sizeof(double) : ampc_dtype_size(t.type);
  int64_t image = conv_out_pixels(d) * d->c * conv_taps(d) * size;
  /* parts of a weight's gradient are summed in the result, which must then be f32 */
  bool whole = d->kind == AMPC_CONV_WEIGHT && d->w_type != AMPC_F32;
  if (image > 0 && !whole) t.images = divisor(d->n, COLUMN_BYTES / image);
  t.parts = d->n / t.images;
  t.bytes = ampc_round_up(t.images * image, AMPC_CUDA_ALIGN);
  return t;
}

/* What NVIDIA advises: more where the multiprocessors copy whole tiles. */
int64_t ampc_gemm_workspace_cuda(int capability)
{
  return capability >= 90 ? 32 * MIB : 4 * MIB;
}

int64_t ampc_conv_workspace_cuda(const ampc_conv *d, bool real64, int capability)
{
  return ampc_conv_columns(d, real64).bytes + ampc_gemm_workspace_cuda(capability);
}
