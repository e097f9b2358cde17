/* Functions that kernels call. They build on maths.cuh or maths64.cuh: `real` is float, in some
 * tests double. Marker lines cut this file into helpers, as maths.cuh explains. */

// --- ampc_to_i64
/* Rounds towards zero. A value out of range becomes the nearest limit; NaN becomes 0. */
DEVICE long long ampc_to_i64(real x)
{
  if (x != x) return 0;
  if (x >= R(9223372036854775808.0)) return 0x7fffffffffffffffLL;
  if (x <= R(-9223372036854775808.0)) return -0x7fffffffffffffffLL - 1;
  return (long long)x;
}

// --- ampc_to_i32
DEVICE int ampc_to_i32(real x)
{
  if (x != x) return 0;
  if (x >= R(2147483648.0)) return 0x7fffffff;
  if (x <= R(-2147483648.0)) return -0x7fffffff - 1;
  return (int)x;
}

// --- ampc_to_u8
DEVICE unsigned char ampc_to_u8(real x)
{
  if (!(x > R(0.0))) return 0;
  return (unsigned char)(x >= R(255.0) ? R(255.0) : x);
}

// --- ampc_max
/* Returns NaN if x or y is NaN. */
DEVICE real ampc_max(real x, real y)
{
  return x > y || x != x ? x : y;
}

// --- ampc_min
DEVICE real ampc_min(real x, real y)
{
  return x < y || x != x ? x : y;
}

// --- ampc_clamp
DEVICE real ampc_clamp(real x, real low, real high)
{
  real y = x < low ? low : x; /* a NaN stays */
  return y > high ? high : y;
}

// --- ampc_sign
DEVICE real ampc_sign(real x)
{
  return (real)((x > R(0.0)) - (x < R(0.0)));
}

// --- ampc_relu
DEVICE real ampc_relu(real x)
{
  return x < R(0.0) ? R(0.0) : x; /* -0 and NaN stay */
}

// --- ampc_rsqrt
DEVICE real ampc_rsqrt(real x)
{
  return R(1.0) / ampc_sqrt(x);
}

// --- ampc_sigmoid
/* Returns 1 / (1 + e^-x), computed from e^-|x|, which cannot overflow. */
DEVICE real ampc_sigmoid(real x)
{
  real e = ampc_exp(-ampc_abs(x));
  return (x < R(0.0) ? e : R(1.0)) / (R(1.0) + e);
}

// --- ampc_softplus
/* Returns log(1 + e^x) = max(x, 0) + log(1 + e^-|x|) */
DEVICE real ampc_softplus(real x)
{
  return ampc_max(x, R(0.0)) + ampc_log1p(ampc_exp(-ampc_abs(x)));
}

// --- ampc_gelu
/* Returns x Phi(x). Phi is computed without cancellation, so it is accurate far below 0. */
DEVICE real ampc_gelu(real x)
{
  return x * ampc_normal_cdf(x);
}

// --- ampc_gelu_slope
/* Returns Phi(x) + x e^(-x^2 / 2) / sqrt(2 pi) */
DEVICE real ampc_gelu_slope(real x)
{
  return ampc_normal_cdf(x) + x * (R(0.39894228040143268) * ampc_exp(R(-0.5) * x * x));
}

// --- ampc_gelu_tanh
/* Returns x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3). (1 + tanh u) / 2 is computed
 * as sigmoid(2 u), which does not cancel. */
DEVICE real ampc_gelu_tanh(real x)
{
  real u = R(1.5957691216057308) * (x + R(0.044715) * x * x * x);
  return x * ampc_sigmoid(u);
}

// --- ampc_gelu_tanh_slope
/* Returns s + x s (1 - s) (2 u)' with s = sigmoid(2 u). 1 - s is computed as sigmoid(-2 u). The
 * factor x s (1 - s) is 0 where (2 u)' is large. */
DEVICE real ampc_gelu_tanh_slope(real x)
{
  real u = R(1.5957691216057308) * (x + R(0.044715) * x * x * x);
  real du = R(1.5957691216057308) * (R(1.0) + R(0.134145) * x * x);
  real s = ampc_sigmoid(u);
  return s + x * s * ampc_sigmoid(-u) * du;
}

// --- ampc_silu
DEVICE real ampc_silu(real x)
{
  return x * ampc_sigmoid(x);
}

// --- ampc_silu_slope
/* Returns s + x s (1 - s) with s = sigmoid(x). 1 - s is sigmoid(-x), which does not cancel. */
DEVICE real ampc_silu_slope(real x)
{
  return ampc_sigmoid(x) * (R(1.0) + x * ampc_sigmoid(-x));
}

// --- ampc_elu
/* Returns -0 for -0, since expm1(-0) is -0. */
DEVICE real ampc_elu(real x, real alpha)
{
  return x > R(0.0) ? x : alpha * ampc_expm1(x);
}

// --- ampc_hardswish
DEVICE real ampc_hardswish(real x)
{
  return x * (ampc_clamp(x + R(3.0), R(0.0), R(6.0)) / R(6.0)); /* x * 6 may overflow */
}

// --- ampc_hardswish_slope
/* Returns at -3 the slope of the left side, at 3 the slope of the right side, as in PyTorch. */
DEVICE real ampc_hardswish_slope(real x)
{
  real y = x < R(3.0) ? x / R(3.0) + R(0.5) : R(1.0);
  return x <= R(-3.0) ? R(0.0) : y;
}

// --- ampc_atan2_slope
/* Returns x / (x^2 + y^2), the derivative of atan2(y, x) with respect to y. With x and y swapped
 * this is minus the derivative with respect to x. At the origin it is 0, as in PyTorch. */
DEVICE real ampc_atan2_slope(real x, real y)
{
  real square = x * x + y * y;
  return square == R(0.0) ? R(0.0) : x / square;
}

// --- ampc_bce
/* Returns -t log p - (1 - t) log(1 - p), with each logarithm clamped to at least -100. The result
 * is NaN if p is not in [0, 1]. */
DEVICE real ampc_bce(real p, real t)
{
  real in = ampc_max(ampc_log(p), R(-100.0)), out = ampc_max(ampc_log1p(-p), R(-100.0));
  return (t - R(1.0)) * out - t * in;
}

// --- ampc_bce_slope
/* Returns (p - t) / (p (1 - p)), without the clamp of ampc_bce. The divisor is at least 1e-12, as
 * in PyTorch, so the result is finite. */
DEVICE real ampc_bce_slope(real p, real t)
{
  return (p - t) / ampc_max((R(1.0) - p) * p, R(1e-12));
}

// --- ampc_remainder
/* Returns x - y floor(x / y), which has the sign of y. */
DEVICE real ampc_remainder(real x, real y)
{
  real r = ampc_fmod(x, y);
  return r != R(0.0) && (r < R(0.0)) != (y < R(0.0)) ? r + y : r;
}

// --- ampc_floor_divide
/* Returns floor(x / y), from the exact remainder because x / y may round up to an integer. */
DEVICE real ampc_floor_divide(real x, real y)
{
  real r = ampc_fmod(x, y);
  real q = (x - r) / y;
  q = r != R(0.0) && (r < R(0.0)) != (y < R(0.0)) ? q - R(1.0) : q;
  real f = ampc_floor(q);
  f = q - f > R(0.5) ? f + R(1.0) : f; /* q is an integer apart from rounding */
  f = q == R(0.0) ? R(0.0) * (x / y) : f; /* keeps the sign of the quotient */
  return y == R(0.0) ? x / y : f;
}

// --- ampc_finite_or_zero
DEVICE real ampc_finite_or_zero(real x)
{
  return x - x == R(0.0) || x != x ? x : R(0.0);
}

// --- ampc_sub_max
/* Returns x - m for a maximum m. An infinite m counts as 0, which avoids inf - inf. */
DEVICE real ampc_sub_max(real x, real m)
{
  return x - ampc_finite_or_zero(m);
}

// --- ampc_abs_int
DEVICE long long ampc_abs_int(long long x)
{
  return x < 0 ? (long long)(0ull - (unsigned long long)x) : x;
}

// --- ampc_sign_int
DEVICE long long ampc_sign_int(long long x)
{
  return (x > 0) - (x < 0);
}

// --- ampc_relu_int
DEVICE long long ampc_relu_int(long long x)
{
  return x < 0 ? 0 : x;
}

// --- ampc_floor_int
DEVICE long long ampc_floor_int(long long x)
{
  return x;
}

// --- ampc_ceil_int
DEVICE long long ampc_ceil_int(long long x)
{
  return x;
}

// --- ampc_round_int
DEVICE long long ampc_round_int(long long x)
{
  return x;
}

// --- ampc_max_i32
DEVICE int ampc_max_i32(int x, int y)
{
  return x > y ? x : y;
}

// --- ampc_min_i32
DEVICE int ampc_min_i32(int x, int y)
{
  return x < y ? x : y;
}

// --- ampc_max_int
DEVICE long long ampc_max_int(long long x, long long y)
{
  return x > y ? x : y;
}

// --- ampc_min_int
DEVICE long long ampc_min_int(long long x, long long y)
{
  return x < y ? x : y;
}

// --- ampc_clamp_int
DEVICE long long ampc_clamp_int(long long x, real low, real high)
{
  long long y = (real)x < low ? ampc_to_i64(low) : x;
  return (real)y > high ? ampc_to_i64(high) : y;
}

// --- ampc_remainder_int
/* Returns a result with the sign of y; 0 for a division by 0. */
DEVICE long long ampc_remainder_int(long long x, long long y)
{
  if (y == 0 || y == -1) return 0;
  long long r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

// --- ampc_floor_divide_int
/* Returns 0 for a division by 0. */
DEVICE long long ampc_floor_divide_int(long long x, long long y)
{
  if (y == 0) return 0;
  if (y == -1) return (long long)(0ull - (unsigned long long)x);
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

// --- ampc_pow_int
/* Squares repeatedly; an overflow wraps around. A negative power is 0 unless x is 1 or -1. */
DEVICE long long ampc_pow_int(long long x, long long y)
{
  unsigned long long base = (unsigned long long)x, r = 1;
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
  for (; y > 0; y /= 2) {
    if (y % 2) r *= base;
    base *= base;
  }
  return (long long)r;
}

// --- ampc_philox
/* Returns the output of Philox4x32-10 (Salmon et al., 2011) for the counter c0 to c3 and the key
 * k0, k1: four words of 32 bits. */
typedef struct ampc_words {
  philox_word at[4];
} ampc_words;
DEVICE ampc_words ampc_philox(philox_word c0, philox_word c1, philox_word c2, philox_word c3,
                              unsigned k0, unsigned k1)
{
  for (int round = 0; round < 10; round++) {
    unsigned long long p0 = 0xd2511f53ull * c0, p1 = 0xcd9e8d57ull * c2;
    c0 = (philox_word)(p1 >> 32) ^ c1 ^ k0;
    c2 = (philox_word)(p0 >> 32) ^ c3 ^ k1;
    c1 = (philox_word)(p1 & 0xffffffffu);
    c3 = (philox_word)(p0 & 0xffffffffu);
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  const ampc_words words = {{c0, c1, c2, c3}};
  return words;
}

// --- ampc_drawn
/* Returns the words of elements 4 * k to 4 * k + 3 of a stream. */
DEVICE ampc_words ampc_drawn(long long seed, long long body, unsigned stream, long long k)
{
  return ampc_philox((unsigned)k, (unsigned)(k >> 32), (unsigned)body, stream, (unsigned)seed,
                     (unsigned)(seed >> 32) ^ (unsigned)(body >> 32));
}

// --- ampc_word
/* Returns the word of an element: word e mod 4 of counter e div 4. */
DEVICE unsigned ampc_word(long long seed, long long body, unsigned stream, long long element)
{
  const ampc_words w = ampc_drawn(seed, body, stream, element >> 2);
  const philox_word even = element & 2 ? w.at[2] : w.at[0], odd = element & 2 ? w.at[3] : w.at[1];
  return (unsigned)(element & 1 ? odd : even);
}

// --- ampc_unit
/* Returns the number in [0, 1) that the upper 24 bits of a word make, a multiple of 2^-24. */
DEVICE real ampc_unit(philox_word word)
{
  return (real)(int)((unsigned)word >> 8) * R(5.9604644775390625e-8);
}

// --- ampc_uniform
/* Returns a uniform random number in [0, 1). A pure function. */
DEVICE real ampc_uniform(long long seed, long long body, unsigned stream, long long element)
{
  return ampc_unit(ampc_word(seed, body, stream, element));
}

// --- ampc_uniforms
/* Computes the numbers of n elements from `first` on. Both are multiples of 4. */
DEVICE void ampc_uniforms(real *out, long long seed, long long body, unsigned stream,
                          long long first, int n)
{
  for (int k = 0; k < n; k += 4) {
    const ampc_words w = ampc_drawn(seed, body, stream, (first + k) >> 2);
    out[k] = ampc_unit(w.at[0]);
    out[k + 1] = ampc_unit(w.at[1]);
    out[k + 2] = ampc_unit(w.at[2]);
    out[k + 3] = ampc_unit(w.at[3]);
  }
}

// --- ampc_part_rows
/* Returns the number of rows in part k, if `rows` rows are cut into parts of `each` rows. */
DEVICE real ampc_part_rows(long long k, long long each, long long rows)
{
  const long long left = rows - k * each;
  return (real)(left < each ? left : each);
}

// --- ampc_box_muller
/* Returns a standard normal random number, computed from two uniform ones of [0, 1). */
DEVICE real ampc_box_muller(real u, real v)
{
  return ampc_sqrt(R(-2.0) * ampc_log(R(1.0) - u)) * ampc_cos_near(R(6.283185307179586) * v);
}

// --- ampc_normal
/* Returns a standard normal random number. A pure function. */
DEVICE real ampc_normal(long long seed, long long body, unsigned stream, long long element)
{
  return ampc_box_muller(ampc_uniform(seed, body, stream, 2 * element),
                         ampc_uniform(seed, body, stream, 2 * element + 1));
}

// --- ampc_normals
/* Computes the numbers of n elements from `first` on. Both are even. */
DEVICE void ampc_normals(real *out, long long seed, long long body, unsigned stream,
                         long long first, int n)
{
  for (int k = 0; k < n; k += 2) {
    const ampc_words w = ampc_drawn(seed, body, stream, (first + k) >> 1);
    out[k] = ampc_box_muller(ampc_unit(w.at[0]), ampc_unit(w.at[1]));
    out[k + 1] = ampc_box_muller(ampc_unit(w.at[2]), ampc_unit(w.at[3]));
  }
}

// --- ampc_place
/* Returns the coordinate of result o of a resampling along an axis of the input image, in pixels. 0
 * is the centre of the first pixel; for the nearest pixel (one tap) it is the edge of the first
 * pixel. The coordinate is a float even if `real` is double, as in PyTorch. */
DEVICE float ampc_place(int o, float scale, int taps, int centred)
{
  if (!centred) return scale * (float)o;
  const float at = scale * ((float)o + 0.5f);
  if (taps == 1) return at;
  return taps == 2 && at < 0.5f ? 0.0f : at - 0.5f;
}

// --- ampc_tap
/* Returns the index of the pixel that tap k reads, clamped to [0, size). */
DEVICE int ampc_tap(float place, int taps, int k, int size)
{
  const int at = (int)floorf(place) - (taps == 4) + k;
  return at < 0 ? 0 : at >= size ? size - 1 : at;
}

// --- ampc_cubic
/* Returns Keys' convolution kernel with a = -3/4, at a distance of 0 to 2 pixels. */
DEVICE real ampc_cubic(real t)
{
  const real a = R(-0.75);
  if (t <= R(1.0)) return ((a + R(2.0)) * t - (a + R(3.0))) * t * t + R(1.0);
  return ((a * t - R(5.0) * a) * t + R(8.0) * a) * t - R(4.0) * a;
}

// --- ampc_tap_weight
DEVICE real ampc_tap_weight(float place, int taps, int k)
{
  const real t = (real)(place - floorf(place));
  if (taps == 1) return R(1.0);
  if (taps == 2) return k ? t : R(1.0) - t;
  return ampc_cubic(k == 0 ? t + R(1.0) : k == 1 ? t : k == 2 ? R(1.0) - t : R(2.0) - t);
}

// --- ampc_pixel_weight
/* Returns the total weight of a pixel in the sum around a place. At a border several taps read the
 * same pixel. */
DEVICE real ampc_pixel_weight(float place, int taps, int pixel, int size)
{
  real sum = R(0.0);
  for (int k = 0; k < taps; k++)
    sum += ampc_tap(place, taps, k, size) == pixel ? ampc_tap_weight(place, taps, k) : R(0.0);
  return sum;
}

// --- ampc_first_place
/* Returns a lower bound for the first result whose sum contains the pixel. */
DEVICE int ampc_first_place(int pixel, float scale, int taps)
{
  if (pixel == 0 || scale <= 0.0f) return 0;
  const int first = (int)((float)(pixel - taps) / scale) - 1;
  return first < 0 ? 0 : first;
}

// --- ampc_schedule_cosine_restarts
/* Computes torch.optim.lr_scheduler.CosineAnnealingWarmRestarts: half a cosine from peak to
 * floor_value over `period` steps, then again over `growth` times as many, and so on. */
DEVICE real ampc_schedule_cosine_restarts(real t, real peak, real period, real growth,
                                          real floor_value)
{
  if (growth == R(1.0)) t -= ampc_floor(t / period) * period;
  while (t >= period) {
    t -= period;
    period *= growth;
  }
  real wave = R(0.5) * (R(1.0) + ampc_cos_near(R(3.14159265358979324) * (t / period)));
  return floor_value + (peak - floor_value) * wave;
}

// --- ampc_langevin
/* Returns coth(x) - 1 / x for x >= 0. Below 0.5 it is a series. */
DEVICE real ampc_langevin(real x)
{
  real q = x * x;
  if (x < R(0.5))
    return x * (R(0.33333333333333333) - q * (R(0.022222222222222222) -
                q * (R(2.1164021164021164e-3) - q * (R(2.1164021164021164e-4) -
                q * R(2.1377799155576934e-5)))));
  return R(1.0) - (R(1.0) / x - R(2.0) / ampc_expm1(R(2.0) * x));
}

// --- ampc_move_scale
/* Does torch.amp.GradScaler.update with a floor, a ceiling and hysteresis. An overflow lowers the
 * scale and restarts the count of steps. `growth_interval` steps without an overflow raise the
 * scale. Products are computed in double and rounded once; a growth beyond f32 is dropped. The
 * first `hysteresis` - 1 overflows after the scale was last due to grow do not change it. If the
 * scale cannot be lowered, *growth is minus the number of overflowing steps in a row. */
DEVICE void ampc_move_scale(const ampc_state *state, int overflow, float *scale, long long *growth,
                            long long *spared)
{
  const double was = (double)*scale;
  if (overflow) {
    const float lower = (float)(was * state->backoff_factor);
    const int lowest = !state->dynamic || *scale <= state->min_scale;
    *growth = !lowest ? 0 : *growth < 0 ? *growth - 1 : -1;
    if (!lowest && *spared + 1 < state->hysteresis)
      ++*spared;
    else if (!lowest)
      *scale = lower > state->min_scale ? lower : state->min_scale;
    return;
  }
  if (*growth < 0) *growth = 0;
  if (!state->dynamic || ++*growth != state->growth_interval) return;
  const float higher = (float)(was * state->growth_factor);
  if (ampc_isfinite(higher)) *scale = higher < state->max_scale ? higher : state->max_scale;
  *growth = 0;
  *spared = 0;
}
