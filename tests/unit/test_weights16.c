/* bf16 weights and moments without f32 masters: the functions of templates/update.cuh against exact
 * references in double, and the host's side of the same numbers in runtime/state/param.c. */
#ifdef __clang__
#  pragma STDC FP_CONTRACT OFF
#else
#  pragma GCC optimize("fp-contract=off")
#endif
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-variable"
#include <math.h>
#include "check.h"
#include "ampc_rt.h"
typedef float real;
#define R(x) ((real)(x))
#include "templates/cpu.h"
#include "runtime/plan/ampc_state.h"
#include "templates/maths.cuh"
#include "templates/device.cuh"
#include "templates/update.cuh"

enum { WORDS = 1 << 16 };

/* Returns the value of a bf16 number; the neighbour above the largest one counts as 2^128. */
static double value_of(bf16 h)
{
  float x = from_bf16(h);
  return isinf(x) ? copysign(0x1p128, x) : x;
}

/* Returns the next number towards 0, and the one beyond it, without bit tricks on x. */
static void neighbours(double x, double *low, double *high)
{
  int e;
  frexp(x, &e);
  double step = ldexp(1, e - 8 > -133 ? e - 8 : -133);
  *low = copysign(floor(fabs(x) / step) * step, x);
  *high = *low + copysign(step, x);
}

/* Draws every word once. So the number of words that round away from 0 is the probability, and the
 * mean of the results is x, exactly. */
static void check_mean(float x)
{
  double low, high, away = 0;
  neighbours(x, &low, &high);
  for (unsigned word = 0; word < WORDS; word++) {
    double y = value_of(ampc_random_bf16(x, word));
    CHECK_MSG(y == low || y == high, "%a became %a, not %a or %a", (double)x, y, low, high);
    away += y == high;
  }
  double mean = (low * (WORDS - away) + high * away) / WORDS;
  CHECK_MSG(mean == x, "the mean of the roundings of %a is %a", (double)x, mean);
}

static void test_probabilities(void)
{
  static const float some[] = {1.0f / 3,   -0x1.01p0f,   0x1.fffffep-1f,   0x1.8p-140f,
                               -0x1p-149f, 0x1.fe8p127f, -0x1.fffffep127f, 0x1.00cp-126f,
                               0.999f,     -3e38f};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) check_mean(some[i]);
  for (unsigned long long b = 0x12345; b < 1ull << 32; b += 0x1ffffd7) /* 128 numbers */
    if (isfinite(bits_float((unsigned)b))) check_mean(bits_float((unsigned)b));
}

static void test_unchanged(void)
{
  for (unsigned h = 0; h < WORDS; h++) {
    float x = from_bf16((bf16)h);
    bf16 want = isnan(x) ? 0x7fff : (bf16)h;
    CHECK(ampc_random_bf16(x, 0) == want && ampc_random_bf16(x, 0xffff) == want);
  }
  const float nan = bits_float(0xff800001u); /* without its lower half it would be infinite */
  CHECK(ampc_random_bf16(nan, 0) == 0x7fff && ampc_random_bf16(nan, 0xffff) == 0x7fff);
  CHECK(ampc_random_bf16(1.3f, 0xabcd1234u) == ampc_random_bf16(1.3f, 0x1234u)); /* lower half */
}

/* Draws from Philox: the mean of n roundings deviates by at most half an ulp over sqrt(n) times 5.
 */
static void test_draws(void)
{
  enum { N = 1 << 20 };
  static unsigned words[N];
  const float x = 1 + 0x1.5p-9f; /* an ulp is 2^-7 */
  double lower = 0, upper = 0;
  ampc_element_words(words, 3, 17, 1u << 31, 0x300000000ll, N);
  for (int i = 0; i < N; i++) {
    if (i < 64) CHECK(words[i] == ampc_word(3, 17, 1u << 31, 0x300000000ll + i));
    lower += value_of(ampc_random_bf16(x, words[i])) - (double)x;
    upper += value_of(ampc_random_bf16(x, words[i] >> 16)) - (double)x;
  }
  double bound = 5 * 0x1p-8 / sqrt(N);
  CHECK_MSG(fabs(lower / N) < bound && fabs(upper / N) < bound, "means %g, %g", lower / N,
            upper / N);
}

/* A weight and its residue: the sum has 16 bits, and splitting it gives both again. */
static void test_two(void)
{
  for (unsigned long long b = 0; b < 1ull << 32; b += 9973) {
    float x = bits_float((unsigned)b), two = ampc_two_bf16(x), high = round_bf16(two);
    float rest = ampc_rest_bf16(two);
    if (isnan(x)) {
      CHECK(isnan(two) && rest == 0);
      continue;
    }
    CHECK_MSG(ampc_two_bf16(two) == two && round_bf16(rest) == rest, "%a", (double)x);
    CHECK_MSG(isinf(high) ? isinf(two) && rest == 0 : high + rest == two, "%a", (double)x);
    if (!isinf(high))
      CHECK_MSG(fabs((double)x - (double)two) <= fmax(fabs((double)x) * 0x1p-17, 0x1p-134), "%a",
                (double)x);
  }
}

/* ---- the host ---- */

enum { N = 1000, ROOM = 1024 };
static const ampc_param param = {
    .path = "w", .rank = 1, .dim = {N}, .elements = N, .init.kind = AMPC_INIT_NORMAL, .init.b = 1};
static const ampc_optimizer_desc optimizer = {"opt", "AdamW", 0,    ROOM, true,
                                              false, false,   true, 1,    0};
static const ampc_block block = {.name = "train", .n_variants = 1};

static ampc_runtime *start(ampc_program *p, bool kahan)
{
  ampc_runtime *rt;
  *p = (ampc_program){.name = "w",
                      .source = "w.amp",
                      .target = "cpu",
                      .precision = "bf16",
                      .params = &param,
                      .optimizers = &optimizer,
                      .blocks = &block,
                      .scaler = {.init = 1},
                      .weights = AMPC_BF16,
                      .moments = AMPC_BF16,
                      .n_params = 1,
                      .n_blocks = 1,
                      .n_optimizers = 1};
  p->space_bytes[AMPC_STATE] = ampc_state_setting(1, 0, 0);
  p->space_bytes[AMPC_MASTER] = p->space_bytes[AMPC_MOMENT1] = 2 * ROOM;
  p->space_bytes[AMPC_RESIDUE] = kahan ? 2 * ROOM : 0;
  p->space_bytes[AMPC_GRAD] = p->space_bytes[AMPC_EMA] = 4 * ROOM;
  MUST(ampc_create(p, "cpu", &rt) == AMPC_OK && ampc_init_params(rt, 5) == AMPC_OK);
  return rt;
}

static const uint16_t *halves(ampc_runtime *rt, ampc_space s)
{
  return (const uint16_t *)(const void *)ampc_spaces(rt)[s];
}

static void check_stored(ampc_runtime *rt, ampc_space space, const float *x, bool kahan)
{
  float back[N];
  CHECK(ampc_write_param(rt, &param, space, x) == AMPC_OK &&
        ampc_read_param(rt, &param, space, back) == AMPC_OK);
  for (int i = 0; i < N; i++) {
    float want = kahan ? ampc_two_bf16(x[i]) : round_bf16(x[i]);
    if (isnan(x[i])) { /* the host keeps more of a NaN's bits than a kernel */
      CHECK(isnan(back[i]));
      continue;
    }
    CHECK_MSG(halves(rt, space)[i] == to_bf16(want), "%a", (double)x[i]);
    if (kahan)
      CHECK_MSG(halves(rt, AMPC_RESIDUE)[i] == to_bf16(ampc_rest_bf16(want)), "%a", (double)x[i]);
    CHECK_MSG(float_bits(back[i]) == float_bits(want), "%a", (double)x[i]);
  }
}

static void test_host(bool kahan)
{
  ampc_program p;
  ampc_runtime *rt = start(&p, kahan);
  float x[N], average[N];
  CHECK(ampc_read_param(rt, &param, AMPC_MASTER, x) == AMPC_OK &&
        ampc_read_param(rt, &param, AMPC_EMA, average) == AMPC_OK);
  CHECK(memcmp(x, average, sizeof x) == 0); /* averages begin at the weights */
  for (int i = 0; i < N; i++) CHECK(x[i] == (kahan ? ampc_two_bf16(x[i]) : round_bf16(x[i])));
  for (unsigned k = 0; k < 300; k++) {
    for (unsigned i = 0; i < N; i++) x[i] = bits_float((k * N + i) * 14251u);
    check_stored(rt, AMPC_MASTER, x, kahan);
    check_stored(rt, AMPC_MOMENT1, x, false);
  }
  ampc_free(rt);
}

int main(void)
{
  test_probabilities();
  test_unchanged();
  test_draws();
  test_two();
  test_host(false);
  test_host(true);
  return check_done();
}
