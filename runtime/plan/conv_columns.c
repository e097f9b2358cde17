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

ampc_conv ampc_conv_of_columns(const ampc_conv *d)
{
  ampc_conv m = *d;
  if (d->kind != AMPC_CONV_DATA || conv_is_pointwise(d)) return m;
  m.kind = AMPC_CONV_FORWARD;
  m.c = d->k, m.k = d->c;
  m.x_type = d->y_type, m.y_type = d->x_type;
  for (uint32_t i = 0; i < d->spatial; i++) m.in[i] = d->out[i], m.out[i] = d->in[i];
  return m;
}

/* 8, 4 or 2 neighbours of a group, in accesses of 4 bytes at least; else 1. */
static int64_t vector_of(int64_t channels, int64_t size)
{
  int64_t most = channels % 8 == 0 ? 8 : channels % 4 == 0 ? 4 : channels % 2 == 0 ? 2 : 1;
  return most * size >= 4 ? most : 1;
}

ConvColumns ampc_conv_columns(const ampc_conv *d, bool real64)
{
  ampc_conv m = ampc_conv_of_columns(d);
  ConvColumns t = {.direct = conv_is_pointwise(d), .images = d->n, .parts = 1, .type = m.x_type};
  if (t.direct || d->n == 0) return t;
  int64_t size = real64 ? (int64_t)sizeof(double) : ampc_dtype_size(t.type);
  int64_t w_size = real64 ? (int64_t)sizeof(double) : ampc_dtype_size(d->w_type);
  int64_t image = conv_out_pixels(&m) * m.c * conv_taps(d) * size;
  /* parts of a weight's gradient are summed in the result, which must then be f32 */
  bool whole = d->kind == AMPC_CONV_WEIGHT && d->w_type != AMPC_F32;
  if (image > 0 && !whole) t.images = divisor(d->n, COLUMN_BYTES / image);
  t.parts = d->n / t.images;
  t.bytes = ampc_round_up(t.images * image, AMPC_CUDA_ALIGN);
  t.vector = vector_of(m.c / m.groups, size);
  if (d->kind == AMPC_CONV_DATA)
    t.turned = ampc_round_up(conv_weights(d) * w_size, AMPC_CUDA_ALIGN);
  return t;
}

/* What NVIDIA advises: more where the multiprocessors copy whole tiles. */
int64_t ampc_gemm_workspace_cuda(int capability)
{
  return capability >= 90 ? 32 * MIB : 4 * MIB;
}

int64_t ampc_conv_workspace_cuda(const ampc_conv *d, bool real64, int capability)
{
  ConvColumns t = ampc_conv_columns(d, real64);
  return t.bytes + t.turned + ampc_gemm_workspace_cuda(capability);
}
