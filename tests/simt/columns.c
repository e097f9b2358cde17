/* Fills the arguments of convolution kernels with numbers: see columns.h. */
#include "columns.h"
#include "runtime/plan/conv_sizes.h"
#include <stdlib.h>
#include <string.h>

static ColumnsArgs whole_args(const ampc_conv *d, const ConvColumns *t)
{
  ampc_conv m = ampc_conv_of_columns(d);
  int64_t x = d->n * conv_in_elements(&m), y = d->n * conv_out_elements(&m), w = conv_weights(d);
  if (d->kind == AMPC_CONV_WEIGHT)
    return (ColumnsArgs){.type = {d->x_type, d->y_type, AMPC_F32, d->w_type},
                         .read = {true, true, false, true},
                         .elements = {x, y, (t->sums + t->joined) * w, w}};
  return (ColumnsArgs){.type = {m.x_type, d->w_type, m.y_type, d->bias_type},
                       .read = {true, true, false, true},
                       .elements = {x, w, y, d->k}};
}

ColumnsArgs columns_args(const ampc_conv *d, bool real64)
{
  ampc_conv m = ampc_conv_of_columns(d);
  ConvColumns t = ampc_conv_columns(d, real64);
  int64_t cells = t.images * conv_out_pixels(&m) * m.c * conv_taps(d), weights = conv_weights(d);
  ColumnsArgs a = {.type = {t.type, t.type, d->w_type, d->w_type},
                   .read = {true, false, true, false},
                   .elements = {t.images * conv_in_elements(&m), cells, weights, weights}};
  if (t.whole) a = whole_args(d, &t);
  a.n = ampc_conv_kernel_args(d);
  for (uint32_t i = 0; i < a.n; i++)
    a.size[i] = real64 && a.type[i] == AMPC_F32 ? 8 : ampc_dtype_size(a.type[i]);
  return a;
}

/* Writes one of many distinct numbers near 1, so that an element at a wrong place is detected. */
static void put_number(char *at, ampc_dtype type, int64_t size, uint32_t n)
{
  double wide = 1 + (double)(n % 65521) / 65536;
  float narrow = (float)wide;
  uint16_t half = (uint16_t)(type == AMPC_F16 ? 0x3c00 + n % 1021 : 0x3f80 + n % 127);
  if (size == 8)
    memcpy(at, &wide, 8);
  else if (size == 4)
    memcpy(at, &narrow, 4);
  else
    memcpy(at, &half, 2);
}

void columns_free(void *args[CONV_KERNEL_ARGS])
{
  for (int i = 0; i < CONV_KERNEL_ARGS; i++) free(args[i]);
}

ampc_status columns_fill(const ColumnsArgs *a, void *out[CONV_KERNEL_ARGS])
{
  bool good = true;
  for (uint32_t i = 0; i < CONV_KERNEL_ARGS; i++) {
    size_t bytes = i < a->n ? (size_t)(a->elements[i] * a->size[i]) : 0;
    out[i] = i < a->n ? malloc(bytes + 1) : NULL;
    good = good && (out[i] || i >= a->n);
    if (out[i]) memset(out[i], 0xff, bytes); /* NaN in every type */
  }
  if (!good) {
    columns_free(out);
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for columns");
  }
  for (uint32_t k = 0; k < a->n; k++)
    for (int64_t i = 0; i < a->elements[k] && a->read[k]; i++)
      put_number((char *)out[k] + i * a->size[k], a->type[k], a->size[k], (uint32_t)i);
  return AMPC_OK;
}

bool columns_are_written(const ColumnsArgs *a, void *const at[CONV_KERNEL_ARGS])
{
  static const unsigned char nan[8] = {255, 255, 255, 255, 255, 255, 255, 255};
  for (uint32_t k = 0; k < a->n; k++)
    for (int64_t i = 0; i < a->elements[k] && !a->read[k]; i++)
      if (memcmp((char *)at[k] + i * a->size[k], nan, (size_t)a->size[k]) == 0) return false;
  return true;
}
