/* Columns of convolutions with numbers in them: see columns.h. */
#include "columns.h"
#include "runtime/plan/conv_columns.h"
#include "runtime/plan/conv_sizes.h"
#include <stdlib.h>
#include <string.h>

ColumnsArgs columns_args(const ampc_conv *d, bool real64)
{
  ConvColumns t = ampc_conv_columns(d, real64);
  ColumnsArgs a;
  int images = d->kind == AMPC_CONV_DATA ? 1 : 0;
  a.type[images] = d->x_type;
  a.elements[images] = t.images * conv_in_elements(d);
  a.type[!images] = t.type;
  a.elements[!images] = t.images * conv_out_pixels(d) * d->c * conv_taps(d);
  for (int i = 0; i < 2; i++)
    a.size[i] = real64 && a.type[i] == AMPC_F32 ? 8 : ampc_dtype_size(a.type[i]);
  return a;
}

/* Distinct numbers near 1, so that an element at a wrong place shows. */
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

ampc_status columns_fill(const ColumnsArgs *a, void *out[2])
{
  for (int i = 0; i < 2; i++) out[i] = calloc((size_t)a->elements[i] + 1, (size_t)a->size[i]);
  if (!out[0] || !out[1]) {
    free(out[0]);
    free(out[1]);
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for columns");
  }
  for (int64_t i = 0; i < a->elements[0]; i++)
    put_number((char *)out[0] + i * a->size[0], a->type[0], a->size[0], (uint32_t)i);
  return AMPC_OK;
}
