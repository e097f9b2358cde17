/* The functions of templates/maths.cuh and device.cuh against double precision, over all exponents,
 * infinities, NaN and subnormal numbers. Those of maths16.cuh for every f16 and every bf16. The
 * errors that those files state are the bounds here. */
#ifdef __clang__
#  pragma STDC FP_CONTRACT OFF
#else
#  pragma GCC optimize("fp-contract=off")
#endif
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-variable"
#include <math.h>
#ifdef __x86_64__
#  include <immintrin.h>
#endif
#include "check.h"
typedef float real;
#define R(x) ((real)(x))
#include "templates/cpu.h"
#include "runtime/plan/ampc_state.h"
#include "templates/maths.cuh"
#include "templates/device.cuh"
#include "templates/maths16.cuh"

/* Returns the error in ulps of the true value, which may be subnormal. */
static double ulps(float got, double want)
{
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  if (fabs(want) >= 0x1.ffffffp127) return got == (want > 0 ? INFINITY : -INFINITY) ? 0 : INFINITY;
  if (isinf(got)) return fabs(want) >= 0x1.fffffcp127 ? 1 : INFINITY;
  if (isnan(got)) return INFINITY;
  int e;
  frexp(want, &e);
  double ulp = ldexp(1.0, e - 24 > -149 ? e - 24 : -149);
  return fabs((double)got - want) / ulp;
}

typedef struct Case {
  const char *name;
  float (*got)(float);
  double (*want)(double);
  double bound;    /* in ulps */
  double absolute; /* accepted error, even if it is above `bound` */
  float low, high; /* a range that gets more samples */
} Case;

static double log2_d(double x)
{
  return log2(x);
}
static double rsqrt_d(double x)
{
  return 1 / sqrt(x);
}
static double sigmoid_d(double x)
{
  return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}
static double softplus_d(double x)
{
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double phi(double x)
{
  return 0.5 * erfc(-x * M_SQRT1_2);
}
static double gelu_d(double x)
{
  return x == -INFINITY ? NAN : x * phi(x);
}
static double gelu_slope_d(double x)
{
  return isinf(x) ? NAN : phi(x) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
}
/* Returns (1 + tanh u) / 2, without the cancellation in 1 + tanh u. */
static double tanh_share(double x)
{
  return 1 / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
static double gelu_tanh_d(double x)
{
  return x * tanh_share(x);
}
static double gelu_tanh_slope_d(double x)
{
  double s = tanh_share(x), du = 2 * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
  return s + x * s * (1 - s) * du;
}
static double silu_d(double x)
{
  return x * sigmoid_d(x);
}
static double silu_slope_d(double x)
{
  return sigmoid_d(x) * (1 + x * sigmoid_d(-x));
}

static float exp_f(float x)
{
  return ampc_exp(x);
}
static float expm1_f(float x)
{
  return ampc_expm1(x);
}
static float log_f(float x)
{
  return ampc_log(x);
}
static float log2_f(float x)
{
  return ampc_log2(x);
}
static float log1p_f(float x)
{
  return ampc_log1p(x);
}
static float tanh_f(float x)
{
  return ampc_tanh(x);
}
static float erf_f(float x)
{
  return ampc_erf(x);
}
static float sin_f(float x)
{
  return ampc_sin(x);
}
static float cos_f(float x)
{
  return ampc_cos(x);
}
static float tan_f(float x)
{
  return ampc_tan(x);
}
static float asin_f(float x)
{
  return ampc_asin(x);
}
static float acos_f(float x)
{
  return ampc_acos(x);
}
static float sinh_f(float x)
{
  return ampc_sinh(x);
}
static float cosh_f(float x)
{
  return ampc_cosh(x);
}
static float rsqrt_f(float x)
{
  return ampc_rsqrt(x);
}
static float sigmoid_f(float x)
{
  return ampc_sigmoid(x);
}
static float softplus_f(float x)
{
  return ampc_softplus(x);
}
static float normal_cdf_f(float x)
{
  return ampc_normal_cdf(x);
}
static float gelu_f(float x)
{
  return ampc_gelu(x);
}
static float gelu_slope_f(float x)
{
  return ampc_gelu_slope(x);
}
static float gelu_tanh_f(float x)
{
  return ampc_gelu_tanh(x);
}
static float gelu_tanh_slope_f(float x)
{
  return ampc_gelu_tanh_slope(x);
}
static float silu_f(float x)
{
  return ampc_silu(x);
}
static float silu_slope_f(float x)
{
  return ampc_silu_slope(x);
}

static const Case all_range[] = {
    {"exp", exp_f, exp, 1.1, 0, -104, 90},
    {"expm1", expm1_f, expm1, 2, 0, -20, 90},
    {"log", log_f, log, 1, 0, 0, 4},
    {"log2", log2_f, log2_d, 2, 0, 0, 4},
    {"log1p", log1p_f, log1p, 2, 0, -1, 4},
    {"tanh", tanh_f, tanh, 3, 0, -10, 10},
    {"erf", erf_f, erf, 2, 0, -5, 5},
    {"normal_cdf", normal_cdf_f, phi, 5, 0, -15, 6},
    {"asin", asin_f, asin, 2, 0, -1, 1},
    {"acos", acos_f, acos, 2, 0, -1, 1},
    {"sinh", sinh_f, sinh, 2, 0, -90, 90},
    {"sinh, small", sinh_f, sinh, 2, 0, -2, 2},
    {"cosh", cosh_f, cosh, 2, 0, -90, 90},
    {"cosh, small", cosh_f, cosh, 2, 0, -2, 2},
    {"sin", sin_f, sin, 2, 0, 1e12f, 1e20f},
    {"cos", cos_f, cos, 2, 0, -3.4e38f, -1e9f},
    {"tan", tan_f, tan, 3, 0, 1e18f, 1e19f},
    {"rsqrt", rsqrt_f, rsqrt_d, 2, 0, 0, 10},
    {"sigmoid", sigmoid_f, sigmoid_d, 3, 0, -104, 20},
    {"softplus", softplus_f, softplus_d, 3, 0, -104, 100},
};
static const Case near_zero[] = {
    {"sin", sin_f, sin, 2, 0, -100, 100},
    {"sin, large", sin_f, sin, 2, 0, 1e5f, 1e9f},
    {"cos", cos_f, cos, 2, 0, -100, 100},
    {"cos, large", cos_f, cos, 2, 0, -1e9f, -1e5f},
    {"tan", tan_f, tan, 3, 0, -100, 100},
    {"tan, pi / 2", tan_f, tan, 3, 0, 1.5707f, 1.5709f},
    {"tan, large", tan_f, tan, 3, 0, 1e5f, 1e9f},
    /* far below 0 the argument of exp is large: half an ulp of it is many ulps of the result */
    {"gelu", gelu_f, gelu_d, 6, 0, -12.5f, 20},
    {"gelu slope", gelu_slope_f, gelu_slope_d, 4, 3e-7, -13, 13},
    {"gelu slope, far", gelu_slope_f, gelu_slope_d, 80, 0, -12.5f, -2},
    {"gelu_tanh", gelu_tanh_f, gelu_tanh_d, 4, 4e-7, -4, 13},
    {"gelu_tanh, far", gelu_tanh_f, gelu_tanh_d, 250, 0, -9.5f, -2},
    {"gelu_tanh slope", gelu_tanh_slope_f, gelu_tanh_slope_d, 4, 2e-6, -4, 9},
    {"gelu_tanh slope, far", gelu_tanh_slope_f, gelu_tanh_slope_d, 250, 0, -9.5f, -2},
    {"gelu_tanh slope, 0", gelu_tanh_slope_f, gelu_tanh_slope_d, 0, 0, -1e18f, -1e3f},
    {"silu", silu_f, silu_d, 4, 0, -80, 80},
    {"silu slope", silu_slope_f, silu_slope_d, 6, 2e-7, -80, 80},
};

static void check_point(const Case *k, float x, double *worst)
{
  double want = k->want(x);
  float got = k->got(x);
  double u = ulps(got, want);
  if (fabs((double)got - want) <= k->absolute) u = 0;
  if (u > *worst) *worst = u;
  CHECK_MSG(u <= k->bound, "%s(%a) = %a, true value %a: %g ulps", k->name, (double)x, (double)got,
            want, u);
}

static void check_stretch(const Case *k, double *worst)
{
  for (int i = 0; i <= 400000; i++)
    check_point(k, k->low + (k->high - k->low) * (float)i / 400000, worst);
}

static void test_functions(void)
{
  for (size_t i = 0; i < sizeof all_range / sizeof *all_range; i++) {
    double worst = 0;
    for (unsigned long long b = 0; b < 1ull << 32; b += 6151)
      check_point(&all_range[i], bits_float((unsigned)b), &worst);
    static const unsigned edges[] = {0,          0x80000000, 1,          0x80000001, 0x7f800000,
                                     0xff800000, 0x7fc00000, 0x7f7fffff, 0xff7fffff, 0x3f800000,
                                     0xbf800000, 0x00800000, 0xbf7fffff};
    for (size_t e = 0; e < sizeof edges / sizeof *edges; e++)
      check_point(&all_range[i], bits_float(edges[e]), &worst);
    check_stretch(&all_range[i], &worst);
    printf("%-16s %.2f ulps\n", all_range[i].name, worst);
  }
  for (size_t i = 0; i < sizeof near_zero / sizeof *near_zero; i++) {
    double worst = 0;
    check_stretch(&near_zero[i], &worst);
    printf("%-16s %.2f ulps\n", near_zero[i].name, worst);
  }
  CHECK(isnan(ampc_sin(INFINITY)) && isnan(ampc_cos(-INFINITY)) && isnan(ampc_sin(NAN)));
}

/* ---- functions for 16 bits ---- */

typedef struct Half {
  const char *name;
  float (*from)(unsigned short);
  unsigned short (*to)(float);
  int digits, lowest; /* the significand's bits; the exponent of the smallest number */
} Half;

/* Returns the distance of the type's numbers at x. */
static double half_ulp(const Half *h, double x)
{
  int e;
  frexp(x, &e);
  return ldexp(1, e - h->digits > h->lowest ? e - h->digits : h->lowest);
}

typedef struct HalfCase {
  const char *name;
  float (*got)(float);
  double (*want)(double);
  double bound[2];        /* f16, bf16: in ulps of the type, before the result is rounded to it */
  double absolute, share; /* of a slope: absolute (1 + share |x|) */
} HalfCase;

static const HalfCase half_cases[] = {
    {"sigmoid", ampc_sigmoid_16, sigmoid_d, {0.0005, 0.0005}, 0, 0},
    {"silu", ampc_silu_16, silu_d, {0.0006, 0.0006}, 0, 0},
    {"gelu_tanh", ampc_gelu_tanh_16, gelu_tanh_d, {0.002, 0.002}, 0, 0},
    {"gelu", ampc_gelu_16, gelu_d, {0.002, 0.02}, 0, 0},
    {"tanh", ampc_tanh_16, tanh, {0, 0}, 0, 0}, /* correctly rounded */
    {"silu slope", ampc_silu_slope_16, silu_slope_d, {0, 0}, 0x1p-22, 0.25},
    {"gelu_tanh slope", ampc_gelu_tanh_slope_16, gelu_tanh_slope_d, {0, 0}, 0x1p-21, 0.5},
    {"gelu slope", ampc_gelu_slope_16, gelu_slope_d, {0, 0}, 0x1p-21, 0.5},
};

/* Returns the error at x in units of the bound, beyond 2^-119: smaller results may be 0. */
static double half_error(const HalfCase *k, const Half *h, int type, float x)
{
  double want = k->want(x), got = k->got(x);
  if (isnan(x) || isinf(want) || isnan(want)) return isnan(want) ? !isnan(got) * 2 : got != want;
  if (!k->absolute && !k->bound[type]) return (h->to((float)got) != h->to((float)want)) * 2;
  double unit =
      k->absolute ? k->absolute * (1 + k->share * fabs(x)) : k->bound[type] * half_ulp(h, want);
  return (fabs(got - want) - 0x1p-119) / unit;
}

static void test_halves(void)
{
  static const Half halves[] = {{"f16", from_f16, to_f16, 11, -24},
                                {"bf16", from_bf16, to_bf16, 8, -133}};
  for (size_t i = 0; i < 2 * sizeof half_cases / sizeof *half_cases; i++) {
    const HalfCase *k = &half_cases[i / 2];
    const Half *h = &halves[i % 2];
    double worst = 0;
    for (unsigned bits = 0; bits < 65536; bits++) {
      float x = h->from((unsigned short)bits);
      if (isinf(x) && k->absolute) continue; /* the limit, below; want has 0 inf */
      double error = half_error(k, h, i % 2, x);
      if (error > worst) worst = error;
      CHECK_MSG(error <= 1, "%s %s(%a) = %a, true value %a: %g of the bound", h->name, k->name,
                (double)x, (double)k->got(x), k->want(x), error);
    }
    if (k->absolute) CHECK(k->got(-INFINITY) == 0 && k->got(INFINITY) == 1);
    printf("%-16s %-4s %.2f of the bound\n", k->name, h->name, worst);
  }
  CHECK(ampc_gelu_slope_16(-5.5f) == 0 && ampc_gelu_slope_16(5.5f) == 1);
  CHECK(ampc_gelu_tanh_slope_16(-5.5f) == 0 && ampc_gelu_tanh_slope_16(5.5f) == 1);
}

static void check_angle(float y, float x, double *worst)
{
  double want = atan2(y, x);
  float got = ampc_atan2(y, x);
  double u = ulps(got, want);
  if (u > *worst) *worst = u;
  CHECK_MSG(u <= 2 && (isnan(want) || signbit(got) == signbit((float)want)),
            "atan2(%a, %a) = %a, true value %a", (double)y, (double)x, (double)got, want);
}

static void test_atan2(void)
{
  static const float special[] = {0,   -0.0f,  1,       -1,    0.5f,     -2,        INFINITY,
                                  NAN, 1e-40f, -1e-45f, 3e38f, -3.4e38f, -INFINITY, 1e-20f};
  int n = sizeof special / sizeof *special;
  double worst = 0;
  for (int i = 0; i < n * n; i++) check_angle(special[i / n], special[i % n], &worst);
  unsigned state = 1;
  for (int i = 0; i < 2000000; i++) {
    state = state * 1664525u + 1013904223u;
    float x = (float)(int)state * 0x1p-31f;
    state = state * 1664525u + 1013904223u;
    float y = i & 1 ? bits_float(state) : (float)(int)state * 0x1p-31f;
    check_angle(y, x, &worst);
  }
  printf("%-16s %.2f ulps\n", "atan2", worst);
}

static void test_pow(void)
{
  static const float special[] = {0,   -0.0f,  1,     -1,   2,     -2,       3,
                                  -3,  0.5f,   -0.5f, 10,   -7,    INFINITY, -INFINITY,
                                  NAN, 1e-40f, 3e38f, 1e8f, -1e8f, 2.5f};
  int n = sizeof special / sizeof *special;
  for (int i = 0; i < n * n; i++) {
    float x = special[i / n], y = special[i % n];
    double want = pow(x, y);
    float got = ampc_pow(x, y);
    CHECK_MSG(ulps(got, want) <= 2 && (isnan(want) || signbit(got) == signbit((float)want)),
              "pow(%g, %g) = %g, true value %g", (double)x, (double)y, (double)got, want);
  }
  double worst = 0;
  unsigned state = 1;
  for (int i = 0; i < 2000000; i++) {
    state = state * 1664525u + 1013904223u;
    float x = bits_float(state >> 1);
    state = state * 1664525u + 1013904223u;
    float y = ((float)(int)state) * 0x1p-31f * 20;
    if (i & 1) x = 0.5f + 0.5f * (float)(state >> 8) * 0x1p-24f, y *= 10;
    if (isnan(x)) continue;
    double u = ulps(ampc_pow(x, y), pow(x, y));
    if (u > worst) worst = u;
    CHECK_MSG(u <= 4, "pow(%a, %a): %g ulps", (double)x, (double)y, u);
  }
  printf("%-16s %.2f ulps\n", "pow", worst);
}

/* The conversions of the processor. */
#ifdef __x86_64__
static float widen_one(unsigned short bits)
{
  return _cvtsh_ss(bits);
}
static unsigned short narrow_one(float x)
{
  return _cvtss_sh(x, 0);
}
#else
typedef union Converted {
  unsigned short bits;
  __fp16 number;
} Converted;
static float widen_one(unsigned short bits)
{
  return (Converted){.bits = bits}.number;
}
static unsigned short narrow_one(float x)
{
  return (Converted){.number = (__fp16)x}.bits;
}
#endif

/* Tests conversions: all 2^16 values from f16; to f16 every 97th float, against the processor. */
static void test_f16(void)
{
  for (unsigned h = 0; h < 65536; h++) {
    float want = widen_one((unsigned short)h), got = from_f16((f16)h);
    CHECK_MSG(isnan(want) ? isnan(got) : float_bits(got) == float_bits(want), "from_f16(%04x)", h);
    if (!isnan(want)) CHECK_MSG(to_f16(want) == h, "to_f16(from_f16(%04x))", h);
  }
  for (unsigned long long b = 0; b < 1ull << 32; b += 97) {
    float x = bits_float((unsigned)b);
    unsigned want = isnan(x) ? 0x7fff : narrow_one(x);
    CHECK_MSG(to_f16(x) == want, "to_f16(%a) = %04x, not %04x", (double)x, to_f16(x), want);
    CHECK_MSG(float_bits(round_f16(x)) == float_bits(from_f16((f16)want)), "round_f16(%a) = %a",
              (double)x, (double)round_f16(x));
  }
  CHECK(to_f16(65519.996f) == 0x7bff && to_f16(65520.0f) == 0x7c00 && to_f16(-65520.0f) == 0xfc00);
}

/* Tests conversions of vectors: the processor's and, for the rest of an odd size, those above. */
static void test_wide(void)
{
  enum { SIZE = 1003 };
  f16 narrow[SIZE];
  float wide[SIZE];
  for (unsigned h = 0; h < 65536; h += SIZE) {
    for (unsigned j = 0; j < SIZE; j++) narrow[j] = (f16)(h + j);
    vector_widen(wide, narrow, SIZE);
    for (unsigned j = 0; j < SIZE; j++)
      CHECK_MSG(float_bits(wide[j]) == float_bits(from_f16(narrow[j])), "widen(%04x)", narrow[j]);
  }
  for (unsigned long long b = 0; b < 1ull << 32; b += 97 * SIZE) {
    for (unsigned j = 0; j < SIZE; j++) wide[j] = bits_float((unsigned)b + 97 * j);
    vector_narrow(narrow, wide, SIZE);
    for (unsigned j = 0; j < SIZE; j++)
      CHECK_MSG(narrow[j] == to_f16(wide[j]), "narrow(%a) = %04x", (double)wide[j], narrow[j]);
  }
}

/* Returns the nearer bf16 neighbour, without bit tricks. A tie goes to the even one. */
static unsigned bf16_by_search(float x)
{
  unsigned below = float_bits(x) >> 16, above = below + 1;
  double low = bits_float(below << 16), high = bits_float(above << 16);
  if (isinf((float)high)) high = copysign(0x1p128, high);
  double to_low = fabs(x - low), to_high = fabs(high - x);
  if (to_low == to_high) return below & 1 ? above : below;
  return to_low < to_high ? below : above;
}

static void test_bf16(void)
{
  for (unsigned h = 0; h < 65536; h++) {
    float x = from_bf16((bf16)h);
    CHECK(float_bits(x) == h << 16);
    if (!isnan(x)) CHECK(to_bf16(x) == h);
  }
  for (unsigned long long b = 0; b < 1ull << 32; b += 97) {
    float x = bits_float((unsigned)b);
    if (isinf(x)) continue;
    unsigned want = isnan(x) ? 0x7fff : bf16_by_search(x);
    CHECK_MSG(to_bf16(x) == want, "to_bf16(%a) = %04x, not %04x", (double)x, to_bf16(x), want);
    CHECK(to_rounded_bf16(round_bf16(x)) == want);
  }
}

static void check_words(ampc_words got, const unsigned want[4])
{
  for (int i = 0; i < 4; i++) CHECK_MSG(got.at[i] == want[i], "word %d: %#llx", i, got.at[i]);
}

/* Checks known answers published with the Random123 library, and that word e mod 4 of counter e
 * div 4 is the number of element e, drawn alone or with others. */
static void test_philox(void)
{
  unsigned m = 0xffffffffu;
  float many[16];
  check_words(ampc_philox(0, 0, 0, 0, 0, 0),
              (unsigned[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  check_words(ampc_philox(m, m, m, m, m, m),
              (unsigned[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  check_words(
      ampc_philox(0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u, 0xa4093822u, 0x299f31d0u),
      (unsigned[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  for (int i = 0; i < 16; i++)
    CHECK(ampc_word(7, 3, 1, 0x300000000ll + i) ==
          ampc_drawn(7, 3, 1, 0xc0000000ll + i / 4).at[i % 4]);
  ampc_uniforms(many, 7, 3, 1, 0x300000000, 16);
  for (int i = 0; i < 16; i++) CHECK(many[i] == ampc_uniform(7, 3, 1, 0x300000000ll + i));
  ampc_normals(many, 7, 3, 1, 0x300000002, 16);
  for (int i = 0; i < 16; i++) CHECK(many[i] == ampc_normal(7, 3, 1, 0x300000002ll + i));
  double sum = 0, square = 0;
  for (int i = 0; i < 1000000; i++) {
    double u = ampc_uniform(7, 3, 1, i);
    CHECK(u >= 0 && u < 1);
    sum += u;
    square += u * u;
  }
  CHECK(fabs(sum / 1e6 - 0.5) < 2e-3 && fabs(square / 1e6 - 1.0 / 3) < 2e-3);
  CHECK(ampc_uniform(7, 3, 1, 5) != ampc_uniform(7, 4, 1, 5));
  CHECK(ampc_uniform(7, 3, 1, 5) != ampc_uniform(7, 3, 2, 5));
}

static void test_small_ones(void)
{
  CHECK(isnan(ampc_max(NAN, 1)) && isnan(ampc_max(1, NAN)) && ampc_max(1, 2) == 2);
  CHECK(isnan(ampc_min(NAN, 1)) && isnan(ampc_min(1, NAN)) && ampc_min(1, 2) == 1);
  CHECK(isnan(ampc_relu(NAN)) && ampc_relu(-1) == 0 && ampc_relu(3) == 3);
  CHECK(!signbit(ampc_relu(-1)) && signbit(ampc_relu(-0.0f)) && !signbit(ampc_relu(0)));
  CHECK(signbit(ampc_elu(-0.0f, 1)) && signbit(ampc_hardswish(-0.0f)) && isnan(ampc_elu(NAN, 1)));
  CHECK(ampc_hardswish_slope(-3) == 0 && ampc_hardswish_slope(3) == 1);
  CHECK(ampc_gelu_slope(0) == 0.5f && ampc_gelu_tanh_slope(0) == 0.5f);
  CHECK(isnan(ampc_clamp(NAN, 0, 1)) && ampc_clamp(2, 0, 1) == 1 && ampc_clamp(-2, 0, 1) == 0);
  CHECK(ampc_round(2.5f) == 2 && ampc_round(3.5f) == 4 && ampc_round(-0.5f) == 0);
  CHECK(ampc_remainder(-7, 3) == 2 && ampc_remainder(7, -3) == -2 && ampc_remainder(6, 3) == 0);
  CHECK(ampc_floor_divide(-7, 3) == -3 && ampc_floor_divide(7, 3) == 2);
  CHECK(isinf(ampc_floor_divide(1, 0)) && ampc_floor_divide(1, 0.1f) == 9);
  CHECK(ampc_remainder_int(-7, 3) == 2 && ampc_floor_divide_int(-7, 3) == -3);
  CHECK(ampc_pow_int(-3, 3) == -27 && ampc_pow_int(0, 0) == 1 && ampc_pow_int(2, 62) == 1ll << 62);
  CHECK(ampc_pow_int(-1, -5) == -1 && ampc_pow_int(-1, -4) == 1 && ampc_pow_int(7, -1) == 0);
  CHECK(ampc_floor_divide_int(5, 0) == 0 && ampc_remainder_int(5, 0) == 0);
  CHECK(ampc_to_i64(NAN) == 0 && ampc_to_i64(1e30f) == 0x7fffffffffffffffLL);
  CHECK(ampc_to_i32(-1e30f) == -0x7fffffff - 1 && ampc_to_i32(-2.9f) == -2);
  CHECK(ampc_to_u8(300) == 255 && ampc_to_u8(-3) == 0 && ampc_to_u8(NAN) == 0);
  CHECK(ampc_sub_max(3, INFINITY) == 3 && ampc_sub_max(3, 1) == 2);
  CHECK(isnan(ampc_finite_or_zero(NAN)) && ampc_finite_or_zero(-INFINITY) == 0);
}

int main(void)
{
  test_functions();
  test_halves();
  test_atan2();
  test_pow();
  test_f16();
  test_wide();
  test_bf16();
  test_philox();
  test_small_ones();
  return check_done();
}
