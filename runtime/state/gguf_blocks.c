/* The blocks of GGUF as floats. A block has one scale, or some have; all products are rounded to
 * f32 one by one, as the package `gguf` of Python does, so that all bits are equal. */
#include "gguf.h"
#include "runtime/base/convert.h"

static float half_at(const uint8_t *from)
{
  float to;
  uint16_t bits = (uint16_t)(from[0] | from[1] << 8);
  convert_widen(AMPC_F16, &bits, &to, 1);
  return to;
}

/* Element i of 32 in 16 bytes: low halves first, then high ones. */
static int nibble(const uint8_t *from, int i)
{
  return i < 16 ? from[i] & 15 : from[i - 16] >> 4;
}

static void widen_q4_0(const uint8_t *b, float *to)
{
  float d = half_at(b);
  for (int i = 0; i < 32; i++) to[i] = d * (float)(nibble(b + 2, i) - 8);
}

static void widen_q4_1(const uint8_t *b, float *to)
{
  float d = half_at(b), m = half_at(b + 2);
  for (int i = 0; i < 32; i++) to[i] = d * (float)nibble(b + 4, i) + m;
}

static void widen_q5_0(const uint8_t *b, float *to)
{
  float d = half_at(b);
  for (int i = 0; i < 32; i++)
    to[i] = d * (float)((nibble(b + 6, i) | (b[2 + i / 8] >> i % 8 & 1) << 4) - 16);
}

static void widen_q8_0(const uint8_t *b, float *to)
{
  float d = half_at(b);
  for (int i = 0; i < 32; i++) to[i] = d * (float)(int8_t)b[2 + i];
}

/* The 6-bit scale and minimum of part j of 8, in 12 bytes. */
static void scale_of(const uint8_t *s, int j, int *scale, int *least)
{
  if (j < 4) {
    *scale = s[j] & 63;
    *least = s[j + 4] & 63;
  } else {
    *scale = (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
    *least = s[j + 4] >> 4 | s[j] >> 6 << 4;
  }
}

/* Blocks of 256 in 8 parts. `high`: a fifth bit of each element, or NULL. */
static void widen_parts(const uint8_t *b, const uint8_t *high, const uint8_t *low, float *to)
{
  float d = half_at(b), m = half_at(b + 2);
  for (int j = 0; j < 8; j++) {
    int scale, least;
    scale_of(b + 4, j, &scale, &least);
    float dj = d * (float)scale, mj = m * (float)least;
    for (int i = 0; i < 32; i++) {
      int q = low[j / 2 * 32 + i] >> 4 * (j % 2) & 15;
      if (high) q |= (high[i] >> j & 1) << 4;
      to[32 * j + i] = dj * (float)q - mj;
    }
  }
}

static void widen_q4_K(const uint8_t *b, float *to)
{
  widen_parts(b, NULL, b + 16, to);
}

static void widen_q5_K(const uint8_t *b, float *to)
{
  widen_parts(b, b + 16, b + 48, to);
}

/* 128 bytes of low halves, 64 bytes of high pairs of bits, 16 scales, the scale of these. */
static void widen_q6_K(const uint8_t *b, float *to)
{
  float d = half_at(b + 208);
  for (int i = 0; i < 256; i++) {
    int part = i % 128 / 32, at = i % 32;
    int low = b[i / 128 * 64 + part % 2 * 32 + at] >> part / 2 * 4 & 15;
    int high = b[128 + i / 128 * 32 + at] >> 2 * part & 3;
    to[i] = d * (float)(int8_t)b[192 + i / 16] * (float)((low | high << 4) - 32);
  }
}

/* By the numbers of ggml_type. */
static const GgufType types[] = {
    [0] = {"f32", "F32", 1, 4, NULL},
    [1] = {"f16", "F16", 1, 2, NULL},
    [2] = {"q4_0", NULL, 32, 18, widen_q4_0},
    [3] = {"q4_1", NULL, 32, 20, widen_q4_1},
    [6] = {"q5_0", NULL, 32, 22, widen_q5_0},
    [7] = {"q5_1", NULL, 32, 24, NULL},
    [8] = {"q8_0", NULL, 32, 34, widen_q8_0},
    [10] = {"q2_K", NULL, 256, 84, NULL},
    [11] = {"q3_K", NULL, 256, 110, NULL},
    [12] = {"q4_K", NULL, 256, 144, widen_q4_K},
    [13] = {"q5_K", NULL, 256, 176, widen_q5_K},
    [14] = {"q6_K", NULL, 256, 210, widen_q6_K},
    [20] = {"iq4_nl", NULL, 32, 18, NULL},
    [23] = {"iq4_xs", NULL, 256, 136, NULL},
    [24] = {"i8", "I8", 1, 1, NULL},
    [25] = {"i16", "I16", 1, 2, NULL},
    [26] = {"i32", "I32", 1, 4, NULL},
    [27] = {"i64", "I64", 1, 8, NULL},
    [28] = {"f64", "F64", 1, 8, NULL},
    [30] = {"bf16", "BF16", 1, 2, NULL},
};

const GgufType *gguf_type(uint32_t number)
{
  static const GgufType unknown = {.name = NULL};
  return number < sizeof types / sizeof *types ? &types[number] : &unknown;
}
