/* Float formats against arithmetic in double: every f16 and bf16 value, and f32 values around every
 * rounding boundary. */
#include <math.h>
#include "check.h"
#include "runtime/base/convert.h"

static float float_of(uint32_t x)
{
  float f;
  memcpy(&f, &x, sizeof f);
  return f;
}

static uint32_t bits_of(float f)
{
  uint32_t x;
  memcpy(&x, &f, sizeof x);
  return x;
}

/* Returns the value of the 16 bits by definition of the format. */
static double value_of(uint16_t h, int mantissa, int bias)
{
  int exponent = (h & 0x7fff) >> mantissa, fraction = h & ((1 << mantissa) - 1);
  int top = (1 << (15 - mantissa)) - 1;
  double v = exponent == top ? (fraction ? NAN : INFINITY)
             : exponent == 0 ? ldexp(fraction, 1 - bias - mantissa)
                             : ldexp(1 + ldexp(fraction, -mantissa), exponent - bias);
  return h & 0x8000 ? -v : v;
}

static void check_widen(ampc_dtype t, int mantissa, int bias)
{
  for (uint32_t h = 0; h < 0x10000; h += 8) {
    uint16_t in[8];
    float vector[8], scalar;
    for (int i = 0; i < 8; i++) in[i] = (uint16_t)(h + (uint32_t)i);
    convert_widen(t, in, vector, 8);
    for (int i = 0; i < 8; i++) {
      double want = value_of(in[i], mantissa, bias);
      convert_widen(t, &in[i], &scalar, 1);
      CHECK_MSG(bits_of(scalar) == bits_of(vector[i]) || t == AMPC_BF16,
                "%x: vector and scalar differ", in[i]);
      CHECK_MSG(isnan(want) ? isnan(scalar)
                            : (double)scalar == want && !signbit(scalar) == !signbit(want),
                "%s %x is %g, not %g", ampc_dtype_name(t), in[i], (double)scalar, want);
    }
  }
}

/* Checks that `got` is the 16-bit value nearest to x, ties to even. Compares both neighbours. */
static void check_narrow_one(ampc_dtype t, float x, uint16_t got, int mantissa, int bias)
{
  double v = value_of(got, mantissa, bias), d = (double)x;
  if (isnan(x)) {
    CHECK_MSG(isnan(v), "NaN became %x", got);
    return;
  }
  CHECK_MSG(!!signbit(x) == !!(got & 0x8000), "%a: sign", d);
  uint16_t size = got & 0x7fff, infinity = (uint16_t)(((1 << (15 - mantissa)) - 1) << mantissa);
  double top = ldexp(2 - ldexp(1, -mantissa - 1), bias); /* from here on x becomes infinity */
  if (size == infinity || fabs(d) >= top) {
    CHECK_MSG((size == infinity) == (fabs(d) >= top), "%s of %a is %x", ampc_dtype_name(t), d, got);
    return;
  }
  double up = value_of((uint16_t)(size + 1), mantissa, bias);
  if (size + 1 == infinity) up = ldexp(1, bias + 1);
  double down = size ? value_of((uint16_t)(size - 1), mantissa, bias) : -up;
  double error = fabs(fabs(d) - fabs(v)), to_up = fabs(up - fabs(d)),
         to_down = fabs(fabs(d) - down);
  CHECK_MSG(error < to_up || (error == to_up && !(size & 1)), "%s of %a is %x", ampc_dtype_name(t),
            d, got);
  CHECK_MSG(error < to_down || (error == to_down && !(size & 1)), "%s of %a is %x",
            ampc_dtype_name(t), d, got);
}

static void check_narrow(ampc_dtype t, int mantissa, int bias)
{
  static const int near[] = {-2, -1, 0, 1, 2};
  int drop = 23 - mantissa;
  for (uint64_t x = 0; x < 0x100000000u; x += 1u << (drop - 1)) {
    float in[8] = {0};
    uint16_t vector[8], scalar;
    for (int i = 0; i < 5; i++) in[i] = float_of((uint32_t)x + (uint32_t)near[i]);
    convert_narrow(t, in, vector, 8);
    for (int i = 0; i < 5; i++) {
      convert_narrow(t, &in[i], &scalar, 1);
      CHECK_MSG(scalar == vector[i], "%s of %x: %x and %x", ampc_dtype_name(t), bits_of(in[i]),
                scalar, vector[i]);
      check_narrow_one(t, in[i], scalar, mantissa, bias);
    }
  }
}

static void check_tf32(void)
{
  static const float in[] = {1,        1 + 0x1p-11f,    1 + 0x3p-11f, -(1 + 0x1p-11f + 0x1p-23f),
                             INFINITY, 0x1.fffffep127f, 0x1p-149f};
  static const float want[] = {1, 1, 1 + 0x2p-10f, -(1 + 0x1p-10f), INFINITY, INFINITY, 0};
  float out[7];
  convert_tf32(in, out, 7);
  for (int i = 0; i < 7; i++)
    CHECK_MSG(out[i] == want[i], "tf32 of %a is %a", (double)in[i], (double)out[i]);
  float nan = NAN;
  convert_tf32(&nan, out, 1);
  CHECK(isnan(out[0]));
}

int main(void)
{
  check_widen(AMPC_F16, 10, 15);
  check_widen(AMPC_BF16, 7, 127);
  check_narrow(AMPC_F16, 10, 15);
  check_narrow(AMPC_BF16, 7, 127);
  check_tf32();
  return check_done();
}
