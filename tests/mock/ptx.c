/* C twins of the kernels that the runtime contains as PTX (runtime/cuda/relu.c, product.cu,
 * kept.cu, add.cu). Only the kernels' names are read from the text. Other tests check the text:
 * test_mock_device.c assembles it with ptxas, and tests/ptx/runtime.c executes it and compares with
 * these twins. */
#include "image.h"
#include "mock.h"
#include "runtime/base/convert.h"
#include "runtime/base/philox.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 256 };

/* Sets element i, of n, to 0 if its bits are in [first, first + count). Arguments: x, n, first,
 * count, columns, gap. */
#define TWIN(NAME, TYPE)                                                                           \
  static void NAME(void *const *arguments, unsigned block, unsigned n_blocks)                      \
  {                                                                                                \
    (void)n_blocks;                                                                                \
    TYPE *x = arguments[0];                                                                        \
    uint64_t n = (uint64_t)arguments[1], end = (block + (uint64_t)1) * BLOCK;                      \
    TYPE first = (TYPE)(uint64_t)arguments[2], count = (TYPE)(uint64_t)arguments[3];               \
    uint64_t columns = (uint64_t)arguments[4], gap = (uint64_t)arguments[5];                       \
    for (uint64_t i = block * (uint64_t)BLOCK; i < end && i < n; i++) {                            \
      TYPE *at = x + i + i / columns * gap;                                                        \
      if ((TYPE)(*at - first) < count) *at = 0;                                                    \
    }                                                                                              \
  }
TWIN(relu16, uint16_t)
TWIN(relu32, uint32_t)
TWIN(relu64, uint64_t)

/* Multiplies like product.cu, one tile per block, with the same arguments. `wide`: in double. */
static void multiply(void *const *p, unsigned block, bool wide)
{
  enum { TILE = 64 };
  int64_t n[18];
  for (int i = 0; i < 18; i++) n[i] = (int64_t)p[i];
  ampc_dtype a = n[15] & 15, b = n[15] >> 4 & 15, c = n[15] >> 8 & 15, bias = n[15] >> 12 & 15;
  int64_t across = (n[5] + TILE - 1) / TILE, down = (n[4] + TILE - 1) / TILE;
  int64_t first_i = block / across % down * TILE, first_j = block % across * TILE;
  int64_t matrix = block / across / down;
  for (int64_t i = first_i; i < n[4] && i < first_i + TILE; i++)
    for (int64_t j = first_j; j < n[5] && j < first_j + TILE; j++) {
      int64_t at = matrix * n[14] + i * n[13] + j;
      double sum = 0;
      for (int64_t k = 0; k < n[6]; k++) {
        double x = number_load(a, wide, p[0], matrix * n[9] + i * n[7] + k * n[8]);
        double y = number_load(b, wide, p[1], matrix * n[12] + j * n[10] + k * n[11]);
        sum = wide ? fma(x, y, sum) : fmaf((float)x, (float)y, (float)sum);
      }
      if (n[16]) sum += number_load(c, wide, p[3], at);
      if (!wide) sum = (float)sum;
      if (p[2]) sum += number_load(bias, wide, p[2], j);
      number_store(c, wide, p[3], at, n[17] && sum < 0 ? 0 : sum);
    }
}

static void product(void *const *p, unsigned block, unsigned n_blocks)
{
  (void)n_blocks;
  multiply(p, block, false);
}

static void product_f64(void *const *p, unsigned block, unsigned n_blocks)
{
  (void)n_blocks;
  multiply(p, block, true);
}

/* The twin of kept.cu. Its draws are those of runtime/base/philox.h: it uses the same counters. */
enum { EACH = 8 };
static bool may_see(void *const *p, uint64_t i)
{
  const unsigned char *mask = p[5];
  uint64_t heads = (uint64_t)p[2], queries = (uint64_t)p[3], keys = (uint64_t)p[4];
  uint64_t at[] = {i / keys / queries / heads, i / keys / queries % heads, i / keys % queries,
                   i % keys};
  uint64_t place = 0;
  for (int k = 0; k < 4; k++) place += at[k] * (uint64_t)p[6 + k];
  return !mask || mask[place];
}

static void kept(void *const *p, unsigned block, unsigned n_blocks)
{
  const int64_t *state = p[12];
  uint64_t n = (uint64_t)p[1], queries = (uint64_t)p[3], keys = (uint64_t)p[4];
  uint64_t stream = (uint64_t)p[13], least = (uint64_t)p[14], first = (uint64_t)p[15];
  uint64_t each = (uint64_t)p[16]; /* numbers of a sample: state[2] is the first sample */
  uint64_t from = (uint64_t)block * BLOCK * EACH;
  (void)n_blocks;
  for (uint64_t i = from; i < n && i < from + BLOCK * EACH; i++) {
    bool is_kept = (!p[11] || i % keys <= i / keys % queries) && may_see(p, i);
    if (least) {
      uint64_t seed = (uint64_t)state[0], body = (uint64_t)state[1];
      uint64_t number = first + (uint64_t)state[2] * each + i;
      Philox drawn =
          philox(seed ^ (body >> 32 << 32), number / 4, (body & UINT32_MAX) | stream << 32);
      is_kept = is_kept && drawn.word[number % 4] >> 8 >= least;
    }
    if (p[17])
      ((uint32_t *)p[0])[i] = is_kept ? (uint32_t)(uint64_t)p[10] : 0;
    else
      ((uint16_t *)p[0])[i] = is_kept ? (uint16_t)(uint64_t)p[10] : 0;
  }
}

static void bias(void *const *p, unsigned block, unsigned n_blocks)
{
  float *out = p[0];
  uint64_t n = (uint64_t)p[1], from = (uint64_t)block * BLOCK * EACH;
  (void)n_blocks;
  for (uint64_t i = from; i < n && i < from + BLOCK * EACH; i++)
    out[i] = may_see(p, i) ? 0 : -1e30f;
}

/* Returns the sum of element `at` of n pieces, in the order of add.cu: first the largest complete
 * tree, then the rest. */
static float tree(ampc_dtype type, const char *from, int64_t apart, int64_t n, int64_t at)
{
  int64_t half = 1;
  if (n == 1) return (float)number_load(type, false, from, at);
  while (2 * half < n) half *= 2;
  return tree(type, from, apart, half, at) + tree(type, from + half * apart, apart, n - half, at);
}

static void add_numbers(ampc_dtype type, void *const *p, unsigned block, int64_t each)
{
  float *to = p[0];
  int64_t count = (int64_t)p[4], begin = block * (int64_t)BLOCK * each, end = begin + BLOCK * each;
  for (int64_t i = begin; i < end && i < count; i++)
    to[i] = tree(type, p[1], (int64_t)p[2], (int64_t)p[3], i);
}

static void add_one(void *const *p, unsigned block, unsigned n_blocks)
{
  (void)n_blocks;
  add_numbers(AMPC_F32, p, block, 1);
}

static void add_bf16(void *const *p, unsigned block, unsigned n_blocks)
{
  (void)n_blocks;
  add_numbers(AMPC_BF16, p, block, 1);
}

static void round_bf16(void *const *p, unsigned block, unsigned n_blocks)
{
  int64_t left = (int64_t)p[2] - block * (int64_t)BLOCK;
  (void)n_blocks;
  convert_narrow(AMPC_BF16, (float *)p[1] + block * BLOCK, (uint16_t *)p[0] + block * BLOCK,
                 left < BLOCK ? left : BLOCK);
}

static void add_pairs(void *const *p, unsigned block, unsigned n_blocks)
{
  (void)n_blocks;
  add_numbers(AMPC_F32, p, block, 2);
}

#define KERNEL(TWIN, BYTES)                                                                        \
  {                                                                                                \
    "ampc_" #TWIN, TWIN, 6, (const unsigned char[])                                                \
    {                                                                                              \
      BYTES, A_NUMBER, A_NUMBER, A_NUMBER, A_NUMBER, A_NUMBER                                      \
    }                                                                                              \
  }
static const MockKernel relus[] = {
    KERNEL(relu16, 2), KERNEL(relu32, 4), KERNEL(relu64, 8), {NULL, NULL, 0, NULL}};
static const unsigned char product_align[18] = {2, 2, 2, 2}; /* all others are numbers: 0 */
static const unsigned char wide_align[18] = {8, 8, 8, 8};
static const MockKernel products[] = {{"ampc_product", product, 18, product_align},
                                      {"ampc_product_f64", product_f64, 18, wide_align},
                                      {NULL, NULL, 0, NULL}};

static const unsigned char kept_align[18] = {2, [5] = 1, [12] = 8}; /* all others are numbers: 0 */
static const unsigned char bias_align[10] = {4, [5] = 1};
static const MockKernel masks[] = {{"ampc_kept", kept, 18, kept_align},
                                   {"ampc_bias", bias, 10, bias_align},
                                   {NULL, NULL, 0, NULL}};

static const unsigned char add_align[5] = {4, 4}, pairs_align[5] = {8, 8};
static const unsigned char bf16_align[5] = {4, 2}, round_align[3] = {2, 4};
static const MockKernel sums[] = {{"ampc_add", add_one, 5, add_align},
                                  {"ampc_add_pairs", add_pairs, 5, pairs_align},
                                  {"ampc_add_bf16", add_bf16, 5, bf16_align},
                                  {"ampc_round_bf16", round_bf16, 3, round_align},
                                  {NULL, NULL, 0, NULL}};

static bool has_all(const char *text, const MockKernel *kernels)
{
  for (const MockKernel *k = kernels; k->name; k++) {
    char entry[64];
    snprintf(entry, sizeof entry, ".visible .entry %s(", k->name);
    if (!strstr(text, entry)) return false;
  }
  return true;
}

const MockKernel *mock_ptx_kernels(const void *image)
{
  const char *text = image, first[] = ".version ";
  while (text[0] == '/' && text[1] == '/') text += strcspn(text, "\n") + 1;
  if (strncmp(text, first, sizeof first - 1) != 0) return NULL;
  static const MockKernel *const all[] = {relus, products, masks, sums};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (has_all(text, all[i])) return all[i];
  return NULL;
}
