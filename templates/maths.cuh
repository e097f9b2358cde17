/* Elementary functions in single precision. The text is both C and CUDA C. It avoids branches, so
 * that compilers can vectorise it, and uses explicit fmaf and otherwise plain IEEE operations.
 * Contraction is off wherever this file is compiled, so results have the same bits on every
 * machine. maths64.cuh defines the same names in double precision.
 *
 * A helper is the text from its marker line to the next one. The emitter copies the helpers that a
 * file uses, and the helpers that these helpers use, in this order. tests/unit/test_maths checks
 * the errors that comments state. */

// --- ampc_inf
DEVICE float ampc_inf(void)
{
  return bits_float(0x7f800000u);
}

// --- ampc_nan
DEVICE float ampc_nan(void)
{
  return bits_float(0x7fc00000u);
}

// --- ampc_isnan
DEVICE int ampc_isnan(float x)
{
  return x != x;
}

// --- ampc_isfinite
DEVICE int ampc_isfinite(float x)
{
  return (float_bits(x) & 0x7f800000u) != 0x7f800000u;
}

// --- ampc_fma
DEVICE float ampc_fma(float a, float b, float c)
{
  return fmaf(a, b, c);
}

// --- ampc_abs
DEVICE float ampc_abs(float x)
{
  return fabsf(x);
}

// --- ampc_sqrt
DEVICE float ampc_sqrt(float x)
{
  return sqrtf(x);
}

// --- ampc_floor
DEVICE float ampc_floor(float x)
{
  return floorf(x);
}

// --- ampc_ceil
DEVICE float ampc_ceil(float x)
{
  return ceilf(x);
}

// --- ampc_round
DEVICE float ampc_round(float x) /* halves to even */
{
  return rintf(x);
}

// --- ampc_fmod
DEVICE float ampc_fmod(float x, float y) /* exact */
{
  return fmodf(x, y);
}

// --- ampc_exp_sum
/* Returns e^(x + low), where |low| is small against |x|. With n = round(x / ln 2), r = x + low - n
 * ln 2 and |r| <= ln(2)/2: e^r = 1 + r + r^2/2! + ... + r^7/7!. 2^n may be subnormal, so it is
 * applied as two factors. */
DEVICE float ampc_exp_sum(float x, float low)
{
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  float shifted = fmaf(x, 1.44269504f, 12582912.0f); /* 1.5 2^23: n is in the low bits */
  float n = shifted - 12582912.0f;
  float r = fmaf(n, -6.93145752e-1f, x); /* ln 2 in two parts */
  r = fmaf(n, -1.42860682e-6f, r) + low;
  float p = fmaf(r, 1.98412698e-4f, 1.38888889e-3f);
  p = fmaf(p, r, 8.33333333e-3f);
  p = fmaf(p, r, 4.16666667e-2f);
  p = fmaf(p, r, 1.66666667e-1f);
  p = fmaf(p, r, 0.5f);
  p = fmaf(p * r, r, r) + 1.0f;
  int i = (int)(float_bits(shifted) - 0x4b400000u);
  int half = i >> 1;
  return p * bits_float((unsigned)(half + 127) << 23) *
         bits_float((unsigned)(i - half + 127) << 23);
}

// --- ampc_exp
DEVICE float ampc_exp(float x) /* error <= 1.1 ulp */
{
  return ampc_exp_sum(x, 0.0f);
}

// --- ampc_expm1
/* Returns e^x - 1 = 2^n (e^r - 1) + (2^n - 1), see ampc_exp_sum; error <= 2 ulp. */
DEVICE float ampc_expm1(float x)
{
  float y = x > 40.0f ? 40.0f : x;
  y = y < -40.0f ? -40.0f : y;
  float shifted = fmaf(y, 1.44269504f, 12582912.0f);
  float n = shifted - 12582912.0f;
  float r = fmaf(n, -6.93145752e-1f, y);
  r = fmaf(n, -1.42860682e-6f, r);
  float p = fmaf(r, 1.98412698e-4f, 1.38888889e-3f);
  p = fmaf(p, r, 8.33333333e-3f);
  p = fmaf(p, r, 4.16666667e-2f);
  p = fmaf(p, r, 1.66666667e-1f);
  p = fmaf(p, r, 0.5f);
  p = fmaf(p * r, r, r);
  float scale = bits_float((float_bits(shifted) - 0x4b400000u + 127u) << 23);
  float small = fmaf(scale, p, scale - 1.0f);
  float large = ampc_exp(x); /* the 1 is less than its last bit */
  small = x == 0.0f ? x : small;
  return x > 40.0f ? large : small;
}

// --- ampc_log_parts
/* Splits x = 2^k m with m in [1/sqrt 2, sqrt 2) and returns m; x is positive and finite. */
DEVICE float ampc_log_parts(float x, float *k)
{
  int tiny = x < 1.17549435e-38f;
  float big = x * 8388608.0f; /* 2^23 makes a subnormal number normal */
  unsigned bits = float_bits(tiny ? big : x);
  int e = (int)(bits - 0x3f3504f3u) >> 23;
  *k = (float)(tiny ? e - 23 : e);
  return bits_float(bits - ((unsigned)e << 23));
}

// --- ampc_log_core
/* Returns log(1 + f) + k ln 2 + low. With s = f / (2 + f): log(1 + f) = 2 atanh s = f - s (f - z
 * P(z)), z = s^2, P(z) = 2/3 + 2/5 z + 2/7 z^2 + 2/9 z^3; |s| <= 0.1716. */
DEVICE float ampc_log_core(float f, float k, float low)
{
  float s = f / (2.0f + f);
  float z = s * s;
  float p = fmaf(z, 2.22222222e-1f, 2.85714286e-1f);
  p = fmaf(p, z, 4.00000000e-1f);
  p = fmaf(p, z, 6.66666667e-1f) * z;
  float rest = fmaf(k, 1.42860682e-6f, low) - s * (f - p);
  return fmaf(k, 6.93145752e-1f, f + rest);
}

// --- ampc_log
DEVICE float ampc_log(float x) /* error <= 1.1 ulp */
{
  float k;
  float m = ampc_log_parts(x, &k);
  float y = ampc_log_core(m - 1.0f, k, 0.0f);
  y = x < ampc_inf() ? y : x; /* inf and NaN stay */
  y = x == 0.0f ? -ampc_inf() : y;
  return x < 0.0f ? ampc_nan() : y;
}

// --- ampc_log2
DEVICE float ampc_log2(float x) /* error <= 2 ulp */
{
  float k;
  float m = ampc_log_parts(x, &k);
  float l = ampc_log_core(m - 1.0f, 0.0f, 0.0f);
  float y = fmaf(l, 1.44269502f, fmaf(l, 1.92596299e-8f, k)); /* 1 / ln 2 in two parts */
  y = x < ampc_inf() ? y : x;
  y = x == 0.0f ? -ampc_inf() : y;
  return x < 0.0f ? ampc_nan() : y;
}

// --- ampc_log1p
/* Returns log(u) + c / u, where u is 1 + x rounded and c is the rounding error; error <= 2 ulp. */
DEVICE float ampc_log1p(float x)
{
  float u = 1.0f + x;
  float lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
  float k;
  float m = ampc_log_parts(u, &k);
  float y = ampc_log_core(m - 1.0f, k, lost / u);
  y = x < ampc_inf() ? y : x;
  y = x == -1.0f ? -ampc_inf() : y;
  y = x < -1.0f ? ampc_nan() : y;
  return ampc_abs(x) < 1e-8f ? x : y; /* keeps -0 and subnormals */
}

// --- ampc_tanh
/* Returns t / (t + 2) with t = e^(2|x|) - 1; error <= 3 ulp. */
DEVICE float ampc_tanh(float x)
{
  float a = ampc_abs(x);
  a = a > 10.0f ? 10.0f : a;
  float t = ampc_expm1(2.0f * a);
  float y = t / (t + 2.0f);
  return x < 0.0f ? -y : (x == 0.0f ? x : y);
}

// --- ampc_erf
/* Returns x + x P(x^2) if |x| <= 1. Otherwise 1 - e^(-Q(|x|)) with Q close to -log(erfc). P and Q
 * are minimax fits computed for this file, with errors of 2^-29. The total error is <= 2 ulp. */
DEVICE float ampc_erf(float x)
{
  float a = ampc_abs(x), z = x * x;
  float p = fmaf(z, 7.8891193e-05f, -8.02084105e-04f);
  p = fmaf(p, z, 5.18953521e-03f);
  p = fmaf(p, z, -2.68544443e-02f);
  p = fmaf(p, z, 1.12836003e-01f);
  p = fmaf(p, z, -3.7612626e-01f);
  p = fmaf(p, z, 1.28379166e-01f);
  float near = fmaf(p, x, x);
  float b = a > 4.0f ? 4.0f : a;
  float q = fmaf(b, -1.86380086e-04f, 2.94766692e-03f);
  q = fmaf(q, b, -2.18380969e-02f);
  q = fmaf(q, b, 1.03106819e-01f);
  q = fmaf(q, b, 6.38144732e-01f);
  q = fmaf(q, b, 1.12708926f);
  q = fmaf(q, b, 3.41512583e-04f);
  float far = 1.0f - ampc_exp(-q);
  far = x < 0.0f ? -far : far;
  return a <= 1.0f ? near : far;
}

// --- ampc_normal_cdf
/* Returns Phi(x), the probability that a standard normal variable is below x. If |x| <= 1: 1/2 + x
 * P(x^2). Otherwise, for x = -a: t Q(t) e^(-a^2 / 2) with t = 1 / (1 + a / 2) and a^2 in two parts.
 * P and Q are minimax fits computed for this file, with errors of 2^-31 and 2^-24. The total error
 * is <= 5 ulp, also far below 0. */
DEVICE float ampc_normal_cdf(float x)
{
  float a = ampc_abs(x), z = x * x;
  float p = fmaf(z, -7.66467929e-06f, 1.13512659e-04f);
  p = fmaf(p, z, -1.18635304e-03f);
  p = fmaf(p, z, 9.97333135e-03f);
  p = fmaf(p, z, -6.64903596e-02f);
  p = fmaf(p, z, 3.98942292e-01f);
  float near = fmaf(p, x, 0.5f);
  float b = a > 15.0f ? 15.0f : a; /* 0 from there on */
  float t = 1.0f / fmaf(b, 0.5f, 1.0f);
  float q = fmaf(t, -1.28407434e-01f, 3.76072288e-01f);
  q = fmaf(q, t, -3.43585491e-01f);
  q = fmaf(q, t, 7.37727201e-03f);
  q = fmaf(q, t, 3.80211137e-02f);
  q = fmaf(q, t, 1.50670156e-01f);
  q = fmaf(q, t, 1.99431315e-01f);
  q = fmaf(q, t, 1.99471205e-01f);
  float square = b * b;
  float far = q * t * ampc_exp_sum(-0.5f * square, -0.5f * fmaf(b, b, -square));
  far = x < 0.0f ? far : 1.0f - far;
  return a <= 1.0f ? near : far;
}

// --- ampc_turn
DEVICE double ampc_turn(double t)
{
  return t - floor(t);
}

// --- ampc_turns
/* Returns x / (2 pi) up to whole turns, in [0, 6), for 2^40 <= |x| < 2^128. The first 17 bits of 1
 * / (2 pi) only add whole turns and are left out. Six numbers hold the next bits, 29 each. The
 * product of x and one of them is exact in a double, and so is its fraction. The bits after these
 * contribute less than 2^-62. */
DEVICE double ampc_turns(double x)
{
  double t = ampc_turn(x * 5.773170016709628e-06);
  t += ampc_turn(x * 3.626141059173845e-15);
  t += ampc_turn(x * 8.135951507965315e-24);
  t += ampc_turn(x * 1.4871367662361868e-32);
  t += ampc_turn(x * 7.85913688470223e-41);
  return t + ampc_turn(x * 4.0267819553577653e-50);
}

// --- ampc_angle
/* Returns an angle below 2^40 that has the sine and cosine of x. */
DEVICE double ampc_angle(float x)
{
  double angle = (double)x;
  if (ampc_abs(x) >= 1099511627776.0f) angle = 6.28318530717958648 * ampc_turns(angle);
  return angle;
}

// --- ampc_sin_cos
/* Returns sin x if quadrant is 0, cos x if it is 1. n = round(x 2/pi) and r = x - n pi/2 are
 * computed in double. Then follow the Taylor series up to r^9 and r^10. Error <= 2 ulp for |x| <
 * 2^40; beyond that r loses precision. */
DEVICE float ampc_sin_cos(double x, int quadrant)
{
  double shifted = fma(x, 6.36619772367581343e-1, 6755399441055744.0); /* 1.5 2^52 */
  double n = shifted - 6755399441055744.0;
  double d = fma(n, -1.57079632679489656, x);
  float r = (float)fma(n, -6.12323399573676604e-17, d);
  r = r > 1.0f ? 1.0f : r;
  r = r < -1.0f ? -1.0f : r;
  float z = r * r;
  float s = fmaf(z, 2.75573192e-6f, -1.98412698e-4f);
  s = fmaf(s, z, 8.33333333e-3f);
  s = fmaf(s, z, -1.66666667e-1f);
  s = fmaf(s * z, r, r);
  float c = fmaf(z, -2.75573192e-7f, 2.48015873e-5f);
  c = fmaf(c, z, -1.38888889e-3f);
  c = fmaf(c, z, 4.16666667e-2f);
  c = fmaf(c, z, -0.5f);
  c = fmaf(c, z, 1.0f);
  int q = (int)(n - 4.0 * floor(0.25 * n)) + quadrant;
  float y = (q & 1) ? c : s;
  return (q & 2) ? -y : y;
}

// --- ampc_sin
DEVICE float ampc_sin(float x)
{
  float y = ampc_sin_cos(ampc_angle(ampc_isfinite(x) ? x : 0.0f), 0);
  y = x == 0.0f ? x : y;
  return ampc_isfinite(x) ? y : ampc_nan();
}

// --- ampc_cos_near
/* Returns the cosine of an angle that is below 2^40. */
DEVICE float ampc_cos_near(float x)
{
  return ampc_sin_cos((double)x, 1);
}

// --- ampc_cos
DEVICE float ampc_cos(float x)
{
  float y = ampc_sin_cos(ampc_angle(ampc_isfinite(x) ? x : 0.0f), 1);
  return ampc_isfinite(x) ? y : ampc_nan();
}

// --- ampc_tan
/* Returns sin x / cos x of the same reduced angle, see ampc_sin_cos; error <= 3 ulp. */
DEVICE float ampc_tan(float x)
{
  double y = ampc_angle(ampc_isfinite(x) ? x : 0.0f);
  float t = ampc_sin_cos(y, 0) / ampc_sin_cos(y, 1);
  t = x == 0.0f ? x : t;
  return ampc_isfinite(x) ? t : ampc_nan();
}

// --- ampc_asin_rest
/* Returns asin s - s for |s| <= 1/2 and z = s^2, computed as s z P(z). P interpolates at Chebyshev
 * points; its error is 2^-29. */
DEVICE float ampc_asin_rest(float s, float z)
{
  float p = fmaf(z, 3.36908475e-02f, 1.71492379e-02f);
  p = fmaf(p, z, 3.11006624e-02f);
  p = fmaf(p, z, 4.45994027e-02f);
  p = fmaf(p, z, 7.50009418e-02f);
  p = fmaf(p, z, 1.66666657e-01f);
  return s * z * p;
}

// --- ampc_asin
/* Returns asin x. For a = |x| > 1/2: asin a = pi/2 - 2 asin sqrt((1 - a) / 2), where 1 - a is
 * exact. Error <= 2 ulp. */
DEVICE float ampc_asin(float x)
{
  float a = ampc_abs(x);
  float z = a <= 0.5f ? x * x : 0.5f * (1.0f - a);
  float s = a <= 0.5f ? a : ampc_sqrt(z); /* NaN above 1 */
  float rest = ampc_asin_rest(s, z);
  float far = (1.57079637f - 2.0f * s) - fmaf(2.0f, rest, 4.37113883e-08f);
  float y = a <= 0.5f ? s + rest : far;
  y = float_bits(x) >> 31 ? -y : y;
  return x != x ? x : y;
}

// --- ampc_acos
/* Returns pi/2 - asin x. For x > 1/2 it is 2 asin sqrt((1 - x) / 2), which does not cancel; x <
 * -1/2 is mirrored. Error <= 2 ulp. */
DEVICE float ampc_acos(float x)
{
  float a = ampc_abs(x);
  float z = a <= 0.5f ? x * x : 0.5f * (1.0f - a);
  float s = a <= 0.5f ? x : ampc_sqrt(z);
  float y = s + ampc_asin_rest(s, z);
  float middle = 1.57079637f - (y + 4.37113883e-08f);
  float left = 3.14159274f - fmaf(2.0f, y, 8.74227766e-08f);
  float outer = x < 0.0f ? left : 2.0f * y;
  return a <= 0.5f ? middle : outer;
}

// --- ampc_atan2
/* Returns the angle of the point (x, y), from -pi to pi. Let a <= b be |x| and |y| in order. The
 * angle in the octant is atan(a / b), or pi/4 + atan((a - b) / (a + b)) if a / b > 1/2, where a - b
 * is exact. Then it is mirrored. atan is an odd polynomial that interpolates at Chebyshev points;
 * its error is 2^-30. Signs of zeros count. Error <= 2 ulp. */
DEVICE float ampc_atan2(float y, float x)
{
  float u = ampc_abs(x), v = ampc_abs(y), inf = ampc_inf();
  float a = u < v ? u : v, b = u < v ? v : u;
  float scale = b > 1e38f ? 0.25f : 1.0f; /* a + b must not overflow */
  a = b < inf ? a * scale : (a < inf ? 0.0f : 1.0f);
  b = b < inf ? b * scale : 1.0f;
  int near = a > 0.5f * b;
  float t = (near ? a - b : a) / (near ? a + b : b);
  t = b > 0.0f ? t : 0.0f;
  float z = t * t;
  float p = fmaf(z, 4.22568619e-02f, -8.23550597e-02f);
  p = fmaf(p, z, 1.10068806e-01f);
  p = fmaf(p, z, -1.42798007e-01f);
  p = fmaf(p, z, 1.99998751e-01f);
  p = fmaf(p, z, -3.33333343e-01f);
  float r = fmaf(t * z, p, t);
  float angle = near ? 0.785398185f + (r - 2.18556941e-08f) : r;
  angle = u < v ? 1.57079637f - (angle + 4.37113883e-08f) : angle;
  angle = float_bits(x) >> 31 ? 3.14159274f - (angle + 8.74227766e-08f) : angle;
  angle = float_bits(y) >> 31 ? -angle : angle;
  return x != x || y != y ? ampc_nan() : angle;
}

// --- ampc_half_exp
/* Returns e^a / 2 for a >= 0, as e^(a - ln 2) with the difference in two parts. It is finite where
 * e^a already overflows. */
DEVICE float ampc_half_exp(float a)
{
  float x = a > 92.0f ? 92.0f : a;
  float high = x - 0.693147182f;
  float low = x >= 1.0f ? (x - high) - 0.693147182f : x - (high + 0.693147182f);
  return ampc_exp_sum(high, low + 1.90465428e-09f);
}

// --- ampc_sinh
/* Returns the Taylor series up to x^11 if |x| < 1. Otherwise (e^a - e^-a) / 2 with a = |x|. Error
 * <= 2 ulp. */
DEVICE float ampc_sinh(float x)
{
  float a = ampc_abs(x), z = x * x;
  float p = fmaf(z, 2.50521084e-8f, 2.75573192e-6f);
  p = fmaf(p, z, 1.98412698e-4f);
  p = fmaf(p, z, 8.33333333e-3f);
  p = fmaf(p, z, 1.66666667e-1f);
  float near = fmaf(p * z, x, x);
  float half = ampc_half_exp(a);
  float far = half - 0.25f / half;
  far = x < 0.0f ? -far : far;
  return a < 1.0f ? near : far;
}

// --- ampc_cosh
/* Returns (e^a + e^-a) / 2; error <= 2 ulp. */
DEVICE float ampc_cosh(float x)
{
  float half = ampc_half_exp(ampc_abs(x));
  return half + 0.25f / half;
}

// --- ampc_pow_positive
/* Returns x^y = e^(y log x) for finite x > 0. log x is kept in two parts: f / (2 + f) is s + t, so
 * that log(1 + f) = 2 s + (2 t + s^3 (2/3 + 2/5 s^2 + ...)). Error <= 4 ulp. */
DEVICE float ampc_pow_positive(float x, float y)
{
  float k;
  float m = ampc_log_parts(x, &k);
  float f = m - 1.0f, d = m + 1.0f;
  float s = f / d;
  float t = (fmaf(-s, d, f) - s * (m - (d - 1.0f))) / d;
  float z = s * s;
  float p = fmaf(z, 1.81818182e-1f, 2.22222222e-1f);
  p = fmaf(p, z, 2.85714286e-1f);
  p = fmaf(p, z, 4.00000000e-1f);
  p = fmaf(p, z, 6.66666667e-1f);
  float low = fmaf(p * z, s, 2.0f * t);
  float high = k * 6.93145752e-1f; /* exact: factors of 8 and 16 bits */
  float sum = high + 2.0f * s;
  float big = high - sum;
  low += (big + 2.0f * s) + fmaf(k, 1.42860682e-6f, 0.0f);
  float l = sum + low;
  low += sum - l;
  float e = y * l;
  float rest = fmaf(y, low, fmaf(y, l, -e));
  return ampc_exp_sum(e, ampc_abs(e) < 200.0f ? rest : 0.0f);
}

// --- ampc_pow
DEVICE float ampc_pow(float x, float y)
{
  float a = ampc_abs(x), inf = ampc_inf();
  int whole = floorf(y) == y;
  int odd = whole && ampc_abs(y) < 16777216.0f && floorf(0.5f * y) != 0.5f * y;
  float r = ampc_pow_positive(a, y);
  r = a == 0.0f ? (y > 0.0f ? 0.0f : inf) : r;
  r = a == inf ? (y > 0.0f ? inf : 0.0f) : r;
  r = ampc_abs(y) == inf ? ((a > 1.0f) == (y > 0.0f) ? inf : 0.0f) : r;
  r = a == 1.0f ? 1.0f : r;
  r = odd && (float_bits(x) >> 31) ? -r : r;
  r = x < 0.0f && x > -inf && !whole ? ampc_nan() : r;
  r = x != x || y != y ? ampc_nan() : r;
  return x == 1.0f || y == 0.0f ? 1.0f : r;
}
