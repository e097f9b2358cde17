/* Moments in 8 bits: the functions of templates/update.cuh and of runtime/state/codes.c against the
 * definition of the dynamic map in double (Dettmers et al., 2022), and what the host writes. */
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
#include "runtime/state/codes.h"
#include "runtime/state/param.h"

enum { BLOCK = AMPC_CODE_BLOCK };

static int by_size(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The map as in the paper: the means of neighbouring bounds in each decade, 0 and 1, sorted. */
static void define(bool any_sign, double map[256])
{
  int n = 0;
  for (int decade = 0; decade < 7; decade++) {
    int means = any_sign ? 1 << decade : 2 << decade;
    for (int i = 0; i < means; i++) {
      double low = 0.1 + 0.9 * i / means, high = 0.1 + 0.9 * (i + 1) / means;
      map[n++] = pow(10, decade - 6) * (low + high) / 2;
      if (any_sign) map[n] = -map[n - 1], n++;
    }
  }
  map[n++] = 0;
  map[n++] = 1;
  MUST(n == 256);
  qsort(map, 256, sizeof *map, by_size);
}

/* Returns the code of the k-th smallest value. */
static int code_at(bool any_sign, int k)
{
  return any_sign ? (k + 129) % 256 : k;
}

/* The decade's power of ten, a product and a literal are rounded: 3 roundings. */
static void test_values(bool any_sign)
{
  double map[256];
  float value[256];
  define(any_sign, map);
  codes_values(any_sign, value);
  for (int k = 0; k < 256; k++) {
    int code = code_at(any_sign, k);
    CHECK_MSG(fabs(value[code] - map[k]) <= 3 * 0x1p-24 * fabs(map[k]), "code %d: %a, not %a", code,
              (double)value[code], map[k]);
    CHECK_MSG(float_bits(value[code]) == float_bits(ampc_code_value(code, any_sign)), "code %d",
              code);
    CHECK(ampc_code(value[code], any_sign) == code);
  }
}

static double distance(const double map[256], double x)
{
  double least = INFINITY;
  for (int k = 0; k < 256; k++) least = fmin(least, fabs(x - map[k]));
  return least;
}

/* The code of x is nearest, except for a few roundings of x if two are nearly as near. Without
 * signs a number above 0 does not become 0. */
static void check_nearest(const double map[256], const float value[256], float x, bool any_sign)
{
  double least = distance(map, (double)x) + 0x1p-21 * fabs((double)x);
  if (!any_sign && x > 0 && (double)x < map[1]) {
    CHECK(ampc_code(x, any_sign) == 1);
    return;
  }
  double own = fabs((double)x - (double)value[ampc_code(x, any_sign)]);
  CHECK_MSG(own <= least, "%a: its value is %g away, the nearest %g", (double)x, own, least);
}

static void test_nearest(bool any_sign)
{
  double map[256];
  float value[256];
  define(any_sign, map);
  codes_values(any_sign, value);
  for (unsigned b = 0; b <= 0x3f800000u; b += 9973) {
    check_nearest(map, value, bits_float(b), any_sign);
    if (any_sign) check_nearest(map, value, -bits_float(b), any_sign);
  }
  for (int k = 0; k < 255; k++)
    for (int ulps = -64; ulps <= 64; ulps++) {
      double middle = (map[k] + map[k + 1]) / 2;
      check_nearest(map, value, (float)(middle + ulps * 0x1p-24 * middle), any_sign);
    }
  CHECK(ampc_code(NAN, any_sign) == 0);
}

/* ---- blocks ---- */

static uint64_t next = 1;

static unsigned draw(void)
{
  next = next * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(next >> 32);
}

/* Makes numbers of all sizes around 2^exponent. */
static void make(float *x, int n, int exponent, bool any_sign)
{
  for (int i = 0; i < n; i++) {
    x[i] = ldexpf(1 + (float)(draw() >> 9) * 0x1p-23f, exponent - (int)(draw() % 30));
    if (any_sign && draw() % 2) x[i] = -x[i];
    if (draw() % 16 == 0) x[i] = 0;
  }
}

/* Packs a block as a kernel does. */
static float pack(const float *x, bool any_sign, uint8_t *codes)
{
  unsigned key = 0;
  for (int i = 0; i < BLOCK; i++)
    if (ampc_size_key(x[i]) > key) key = ampc_size_key(x[i]);
  const float scale = ampc_code_scale(key), share = fabsf(scale) > 0 ? 1 / scale : 0;
  for (int i = 0; i < BLOCK; i++) codes[i] = ampc_code(x[i] * share, any_sign);
  return scale;
}

/* What a block becomes stays as it is, in kernels and on the host. */
static void check_block(const float *x, bool any_sign)
{
  uint8_t codes[BLOCK], again[BLOCK];
  float value[256], y[BLOCK], scale = pack(x, any_sign, codes);
  codes_values(any_sign, value);
  codes_unpack(value, codes, scale, BLOCK, y);
  for (int i = 0; i < BLOCK; i++) {
    float own = ampc_code_value(codes[i], any_sign) * scale;
    CHECK(isnan(own) ? isnan(y[i]) : float_bits(own) == float_bits(y[i]));
    if (isnan(scale)) continue;
    CHECK_MSG(fabsf(y[i] - x[i]) <= 0.72f * fabsf(x[i]) + fabsf(scale) * 3.3e-7f + 0x1p-100f,
              "%a, %a", (double)x[i], (double)y[i]);
    if (fabsf(x[i]) == fabsf(scale) && (x[i] > 0) == (scale > 0)) CHECK(y[i] == x[i]);
  }
  float other = pack(y, any_sign, again);
  CHECK(float_bits(other) == float_bits(scale) && memcmp(codes, again, BLOCK) == 0);
  other = codes_pack(value, any_sign, x, BLOCK, again);
  CHECK(isnan(scale) ? isnan(other) : float_bits(other) == float_bits(scale));
  other = codes_pack(value, any_sign, y, BLOCK, again);
  CHECK(isnan(scale) ? isnan(other) : float_bits(other) == float_bits(scale));
  CHECK(memcmp(codes, again, BLOCK) == 0);
}

static void test_blocks(bool any_sign)
{
  float x[BLOCK];
  for (int exponent = -130; exponent < 127; exponent++)
    for (int i = 0; i < 8; i++) {
      make(x, BLOCK, exponent, any_sign);
      if (i == 7) x[draw() % BLOCK] = x[draw() % BLOCK] = draw() % 2 ? INFINITY : NAN;
      check_block(x, any_sign);
    }
  for (int i = 0; i < BLOCK; i++) x[i] = any_sign && i % 2 ? -0.0f : 0;
  check_block(x, any_sign);
  for (int i = 0; i < BLOCK; i++)
    x[i] = any_sign && i % 3 ? -0.75f : 0.75f; /* both signs are largest */
  check_block(x, any_sign);
  for (int i = 0; i < BLOCK; i++) x[i] = 0x1.fffffep127f;
  check_block(x, any_sign);
}

/* ---- the host ---- */

enum { FILTERS = 101, CHANNELS = 3, TAPS = 5, N = FILTERS * CHANNELS * TAPS, ROOM = 1536 };
static const ampc_param param = {.path = "w",
                                 .rank = 3,
                                 .dim = {FILTERS, CHANNELS, TAPS},
                                 .elements = N,
                                 .offset = BLOCK,
                                 .channels_last = true};
static const ampc_optimizer_desc optimizer = {"opt", "AdamW", 0, BLOCK + ROOM, true, true, false,
                                              false, 1,       2};
static const ampc_block block = {.name = "train", .n_variants = 1};

static ampc_runtime *start(ampc_program *p)
{
  ampc_runtime *rt;
  *p = (ampc_program){.name = "w",
                      .source = "w.amp",
                      .target = "cpu",
                      .precision = "f32",
                      .params = &param,
                      .optimizers = &optimizer,
                      .blocks = &block,
                      .scaler = {.init = 1},
                      .moments = AMPC_U8,
                      .n_params = 1,
                      .n_blocks = 1,
                      .n_optimizers = 1};
  p->space_bytes[AMPC_STATE] = ampc_state_setting(1, 0, 0);
  p->space_bytes[AMPC_MOMENT1] = p->space_bytes[AMPC_MOMENT2] = BLOCK + ROOM;
  p->space_bytes[AMPC_SCALE1] = p->space_bytes[AMPC_SCALE2] = (BLOCK + ROOM) / BLOCK * 4;
  p->space_bytes[AMPC_GRAD] = p->space_bytes[AMPC_MASTER] = 4 * (BLOCK + ROOM);
  MUST(ampc_create(p, "cpu", &rt) == AMPC_OK && ampc_init_params(rt, 5) == AMPC_OK);
  return rt;
}

/* Blocks are neighbours in memory, where channels come last. The rest of the last block is 0. */
static void check_written(ampc_runtime *rt, int moment, const float *x)
{
  const uint8_t *codes = (const uint8_t *)ampc_spaces(rt)[AMPC_MOMENT1 + moment] + BLOCK;
  const float *scales = (const float *)ampc_spaces(rt)[AMPC_SCALE1 + moment] + 1;
  float stored[ROOM] = {0};
  for (int i = 0; i < N; i++) {
    int filter = i / (CHANNELS * TAPS), channel = i / TAPS % CHANNELS, tap = i % TAPS;
    stored[(filter * TAPS + tap) * CHANNELS + channel] = x[i];
  }
  for (int b = 0; b < ROOM / BLOCK; b++) {
    uint8_t want[BLOCK];
    float scale = pack(stored + b * BLOCK, moment == 0, want);
    CHECK(float_bits(scale) == float_bits(scales[b]));
    CHECK(memcmp(codes + b * BLOCK, want, BLOCK) == 0);
  }
  CHECK(codes[-1] == 0 && codes[ROOM - 1] == 0);
}

static void test_host(void)
{
  ampc_program p;
  ampc_runtime *rt = start(&p);
  float x[N], y[N], z[N];
  for (int moment = 0; moment < 2; moment++) {
    ampc_space space = AMPC_MOMENT1 + moment;
    CHECK(ampc_read_param(rt, &param, space, y) == AMPC_OK);
    for (int i = 0; i < N; i++) CHECK(y[i] == 0);
    make(x, N, 0, moment == 0);
    CHECK(ampc_write_param(rt, &param, space, x) == AMPC_OK);
    check_written(rt, moment, x);
    CHECK(ampc_read_param(rt, &param, space, y) == AMPC_OK);
    CHECK(ampc_write_param(rt, &param, space, y) == AMPC_OK);
    check_written(rt, moment, x);
    CHECK(ampc_read_param(rt, &param, space, z) == AMPC_OK && memcmp(y, z, sizeof y) == 0);
  }
  ampc_free(rt);
}

/* Pieces that are written alone consist of whole blocks and whole filters. */
static void test_pieces(void)
{
  for (int64_t taps = 1; taps < 700; taps += 7) {
    ampc_param q = {.rank = 3, .dim = {9999, 3, taps}, .elements = 29997 * taps};
    for (int last = 0; last < 2; last++) {
      q.channels_last = last;
      for (int64_t most = 1; most < 1 << 20; most *= 3) {
        int64_t n = param_piece(&q, most);
        CHECK(n == q.elements || (n % BLOCK == 0 && (!last || n % (3 * taps) == 0)));
      }
    }
  }
}

int main(void)
{
  for (int any_sign = 0; any_sign < 2; any_sign++) {
    test_values(any_sign);
    test_nearest(any_sign);
    test_blocks(any_sign);
  }
  test_host();
  test_pieces();
  return check_done();
}
