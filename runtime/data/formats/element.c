/* Conversion of elements. Integers stay exact: they are not converted to double. */
#include "element.h"
#include <string.h>
#include "runtime/base/convert.h"

#define NARROW_TYPE(KIND, ...)                                                                     \
  case ELEMENT_##KIND:                                                                             \
    *out = AMPC_##KIND;                                                                            \
    return t.size == ampc_dtype_size(AMPC_##KIND);

bool element_dtype(ElementType t, ampc_dtype *out)
{
  switch (t.kind) {
  case ELEMENT_BOOL:
    *out = AMPC_BOOL;
    return t.size == 1;
  case ELEMENT_UNSIGNED:
    *out = t.size == 1 ? AMPC_U8 : t.size == 2 ? AMPC_I32 : AMPC_I64;
    return t.size <= 4;
  case ELEMENT_SIGNED:
    *out = t.size <= 4 ? AMPC_I32 : AMPC_I64;
    return t.size <= 8;
  case ELEMENT_FLOAT:
    *out = AMPC_F32;
    return t.size == 4 || t.size == 8;
    AMPC_NARROW_FLOATS(NARROW_TYPE)
  default:
    return false;
  }
}

static uint64_t load_bits(ElementType t, const uint8_t *from)
{
  uint64_t bits = 0;
  for (unsigned i = 0; i < t.size; i++) bits = bits << 8 | from[t.big_endian ? i : t.size - 1u - i];
  return bits;
}

static double float_value(ElementType t, uint64_t bits)
{
  uint32_t bits32 = (uint32_t)bits;
  float f;
  double d;
  if (t.size == 4) {
    memcpy(&f, &bits32, sizeof f);
    return (double)f;
  }
  memcpy(&d, &bits, sizeof d);
  return d;
}

static int64_t integer_value(ElementType t, uint64_t bits)
{
  unsigned unused = 64 - 8u * t.size;
  return t.kind == ELEMENT_SIGNED ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

static void store_integer(ampc_dtype dtype, void *to, int64_t i, int64_t value)
{
  switch (dtype) {
  case AMPC_U8:
    ((uint8_t *)to)[i] = (uint8_t)value;
    break;
  case AMPC_I32:
    ((int32_t *)to)[i] = (int32_t)value;
    break;
  default:
    ((int64_t *)to)[i] = value;
  }
}

/* Copies or converts elements. Narrow floats keep their bits; only f32 and f64 are rounded. */
void element_copy(const ampc_program *p, ElementType t, const uint8_t *from, int64_t n,
                  ampc_dtype dtype, void *to)
{
  bool same = t.size == ampc_element_size(p, dtype) && (!t.big_endian || t.size == 1);
  if (same && t.kind != ELEMENT_BOOL) {
    memcpy(to, from, (size_t)n * t.size);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = load_bits(t, from + i * t.size);
    if (t.kind == ELEMENT_FLOAT) {
      number_store(dtype, p->real64, to, i, float_value(t, bits));
    } else if (t.kind == ELEMENT_BOOL) {
      ((uint8_t *)to)[i] = bits != 0;
    } else if (t.kind > ELEMENT_FLOAT) {
      memcpy((char *)to + i * t.size, &bits, t.size);
    } else {
      store_integer(dtype, to, i, integer_value(t, bits));
    }
  }
}
