/* The kernels that the runtime contains as PTX (runtime/cuda): the product, masks and dropout for
 * cuDNN, sums of pieces, and relu. The texts need no NVRTC. Each launch is compared bit by bit with
 * a plain loop: the mock's twin of the kernel, or for relu the definition. Products may read only
 * the elements that they need; the other kernels may access all of their buffers. */
#include "runtime.h"
#include "image.h"
#include "memory.h"
#include "runner/selftest/run.h"
#include "runtime/base/convert.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/mock/image.h"
#include "warp.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_ARGUMENTS = 18,
  BLOCK = 256,
  EACH = 8,
  TILE = 64,
  ELEMENTS = 1 << 16,
  WIDEST = 8,
  WRONG = 5
};

static const char *const texts[] = {cuda_product_ptx, cuda_kept_ptx, cuda_add_ptx, cuda_relu_ptx};
enum { TEXT_product, TEXT_kept, TEXT_add, TEXT_relu, TEXTS };
static Text edited[TEXTS];
static unsigned launches, wrong;

typedef void Twin(void *const *arguments, unsigned block, unsigned n_blocks);

typedef struct Launch {
  const char *kernel;
  int text;
  Twin *twin;
  void *args[MOST_ARGUMENTS];
  char *out; /* the buffer that it writes */
  size_t out_bytes;
  unsigned grid;
} Launch;

/* ---- a launch ---- */

static WordList words;

/* Memory that the launch may access. */
static void allow(const void *at, size_t bytes)
{
  for (size_t i = 0; i < bytes; i++) memory_touch((const char *)at + i, 1, false);
}

static void begin_allowing(void)
{
  MemoryRun run = {.twin = true, .words = &words};
  memory_begin(&run);
}

static bool execute(const Launch *run, const PtxImage *image, SimtOrder order, SimtFault *fault)
{
  SimtLaunch l = {.args = run->args, .grid = run->grid, .block = BLOCK, .order = order, .seed = 7};
  bool waited;
  ptx_prepare(&l, image);
  MemoryRun memory = {.shared = l.shared, .shared_size = l.shared_size, .words = &words};
  memory_begin(&memory);
  bool good = simt_run(&l, fault, &waited);
  memory_end();
  return good;
}

static Twin *twin_of(const Launch *run)
{
  const MockKernel *k = mock_ptx_kernels(texts[run->text]);
  while (strcmp(k->name, run->kernel) != 0) k++;
  return k->run;
}

/* Compares a launch with its twin in each order, after begin_allowing() and allow(). */
static void check(const Launch *run)
{
  PtxImage image;
  SimtFault fault = {0};
  Arena *arena = arena_create();
  char *before = malloc(run->out_bytes), *want = malloc(run->out_bytes);
  if (!before || !want) abort();
  memory_end();
  memcpy(before, run->out, run->out_bytes);
  for (unsigned b = 0; b < run->grid; b++)
    (run->twin ? run->twin : twin_of(run))(run->args, b, run->grid);
  memcpy(want, run->out, run->out_bytes);
  const char *text = NULL;
  bool good = ptx_inline(arena, edited[run->text].at, &text) &&
              !ptx_load_text(arena, text, run->kernel, &image);
  if (!good) snprintf(fault.text, sizeof fault.text, "%.150s", text ? ampc_last_error() : "calls");
  for (SimtOrder order = SIMT_FORWARD; good && order < SIMT_ORDERS; order++) {
    memcpy(run->out, before, run->out_bytes);
    good = execute(run, &image, order, &fault);
    if (good && memcmp(run->out, want, run->out_bytes) == 0) continue;
    if (good) snprintf(fault.text, sizeof fault.text, "another number than the plain loop");
    good = false;
  }
  if (!good) fprintf(stderr, "simt: FAILED %s: %s\n", run->kernel, fault.text);
  launches++;
  wrong += !good;
  free(before);
  free(want);
  arena_destroy(arena);
}

/* ---- the product ---- */

typedef struct OwnProduct {
  int64_t m, n, k, batch, a_row, a_step, a_stride, b_column, b_step, b_stride, c_row, c_stride;
  ampc_dtype a, b, c, bias;
  bool has_bias, accumulate, relu;
  bool wide; /* f32 means doubles */
} OwnProduct;

static const OwnProduct products[] = {
    /* [m, k] by [k, n], contiguous */
    {70, 65, 33,       1,        33,       1,        0,    1,     65,   0,
     65, 0,  AMPC_F16, AMPC_F16, AMPC_F16, AMPC_F16, true, false, true, false},
    /* both transposed, a batch, gaps */
    {5,   130, 17,        3,         1,         7,        150,  20,    1,     2700,
     131, 700, AMPC_BF16, AMPC_BF16, AMPC_BF16, AMPC_F32, true, false, false, false},
    /* a weight gradient: y^T x, added to C */
    {64, 64, 100,      1,        1,        64,       0,     1,    70,    0,
     64, 0,  AMPC_F16, AMPC_F16, AMPC_F32, AMPC_F32, false, true, false, false},
    {3, 2, 1,        2,        1,        1,        3,    1,     2,    2,
     2, 6, AMPC_F32, AMPC_F32, AMPC_F32, AMPC_F32, true, false, true, false},
    {65, 1, 16,       1,        16,       1,        0,     1,     1,    0,
     1,  0, AMPC_F32, AMPC_F32, AMPC_F16, AMPC_F32, false, false, true, false},
    {2,  66, 0,        1,        1,         1,         0,    1,     66,    0,
     66, 0,  AMPC_F16, AMPC_F16, AMPC_BF16, AMPC_BF16, true, false, false, false}, /* k = 0 */
    {70, 65, 3,        1,        1,        70,       0,    1,     65,   0,
     65, 0,  AMPC_F32, AMPC_F32, AMPC_F32, AMPC_F32, true, false, true, true},
    {1, 5, 9,        3,        9,        1,        9,     9,    1,     45,
     5, 6, AMPC_F32, AMPC_F32, AMPC_F32, AMPC_F32, false, true, false, true},
};

/* Returns space for ELEMENTS numbers of a type, aligned only to the type, and fills it. */
static char *operand(ampc_dtype type, bool wide, unsigned seed, char **space)
{
  *space = calloc(ELEMENTS + 1, WIDEST);
  if (!*space) abort();
  char *bytes = *space + (wide ? 8 : ampc_dtype_size(type));
  for (int i = 0; i < ELEMENTS; i++) { /* eighths: sums are exact, only stores round */
    seed = seed * 1664525u + 1013904223u;
    number_store(type, wide, bytes, i, ((int)(seed >> 24) - 128) / 8.0);
  }
  return bytes;
}

static void allow_element(const OwnProduct *p, const char *base, ampc_dtype type, int64_t i)
{
  int64_t size = p->wide ? 8 : ampc_dtype_size(type);
  allow(base + i * size, (size_t)size);
}

static void allow_product(const OwnProduct *p, void *const args[])
{
  for (int64_t l = 0; l < p->batch; l++) {
    for (int64_t k = 0; k < p->k; k++) {
      for (int64_t i = 0; i < p->m; i++)
        allow_element(p, args[0], p->a, l * p->a_stride + i * p->a_row + k * p->a_step);
      for (int64_t j = 0; j < p->n; j++)
        allow_element(p, args[1], p->b, l * p->b_stride + j * p->b_column + k * p->b_step);
    }
    for (int64_t i = 0; i < p->m; i++)
      for (int64_t j = 0; j < p->n; j++)
        allow_element(p, args[3], p->c, l * p->c_stride + i * p->c_row + j);
  }
  for (int64_t j = 0; p->has_bias && j < p->n; j++) allow_element(p, args[2], p->bias, j);
}

static void check_product(const OwnProduct *p)
{
  char *space[4];
  int64_t types = p->a | p->b << 4 | p->c << 8 | p->bias << 12;
  const int64_t numbers[] = {p->m,        p->n,        p->k,          p->a_row,    p->a_step,
                             p->a_stride, p->b_column, p->b_step,     p->b_stride, p->c_row,
                             p->c_stride, types,       p->accumulate, p->relu};
  Launch run = {.kernel = p->wide ? "ampc_product_f64" : "ampc_product", .text = TEXT_product};
  run.args[0] = operand(p->a, p->wide, 1, &space[0]);
  run.args[1] = operand(p->b, p->wide, 2, &space[1]);
  run.args[2] = operand(p->bias, p->wide, 3, &space[2]);
  run.args[3] = run.out = operand(p->c, p->wide, 4, &space[3]);
  if (!p->has_bias) run.args[2] = NULL;
  for (int i = 4; i < MOST_ARGUMENTS; i++) run.args[i] = (void *)(uintptr_t)numbers[i - 4];
  run.out_bytes = (size_t)ELEMENTS * (p->wide ? 8 : (size_t)ampc_dtype_size(p->c));
  run.grid = (unsigned)((p->m + TILE - 1) / TILE * ((p->n + TILE - 1) / TILE) * p->batch);
  begin_allowing();
  allow_product(p, run.args);
  check(&run);
  for (int i = 0; i < 4; i++) free(space[i]);
}

/* ---- masks and dropout ---- */

enum { IMAGES = 2, HEADS = 3, QUERIES = 29, KEYS = 37, WEIGHTS = IMAGES * HEADS * QUERIES * KEYS };

/* `mask`: 0: none; 1: a byte for each weight; 2: a byte for each image and key. kept.cu explains
 * `least` and `wide`. The numbers of the draws exceed 32 bits; they begin at each of the four words
 * of a call. */
static void check_masks(const char *kernel, int mask, bool causal, uint64_t least, bool wide)
{
  static unsigned char bytes[WEIGHTS];
  static _Alignas(16) float out[WEIGHTS];
  static const uint64_t state[] = {0x123456789abcdefu, 0x300000007u, 5}; /* as in ampc_state */
  static const uint64_t strides[][4] = {
      {0, 0, 0, 0}, {HEADS * QUERIES * KEYS, QUERIES * KEYS, KEYS, 1}, {KEYS, 0, 0, 1}};
  const uint64_t *m = strides[mask];
  const uint64_t at = mask ? (uintptr_t)bytes : 0, one = wide ? 0x3f8e38e4 : 0x3c00, stream = 5;
  const uint64_t first = 0xfffffff0u + (uint64_t)mask + causal;
  const uint64_t shape[] = {WEIGHTS, HEADS, QUERIES, KEYS, at, m[0], m[1], m[2], m[3]};
  const uint64_t draws[] = {one, causal, (uintptr_t)state, stream, least, first, KEYS, wide};
  Launch run = {.kernel = kernel,
                .text = TEXT_kept,
                .out = (char *)out,
                .out_bytes = WEIGHTS * (wide ? sizeof(float) : sizeof(uint16_t)),
                .grid = (WEIGHTS + BLOCK * EACH - 1) / (BLOCK * EACH)};
  run.args[0] = out;
  for (int i = 0; i < 9; i++) run.args[1 + i] = (void *)(uintptr_t)shape[i];
  for (int i = 0; i < 8; i++) run.args[10 + i] = (void *)(uintptr_t)draws[i];
  for (int i = 0; i < WEIGHTS; i++) bytes[i] = i * 7 % 5 > 1;
  begin_allowing();
  allow(out, run.out_bytes);
  if (mask) allow(bytes, mask == 1 ? WEIGHTS : IMAGES * KEYS);
  if (least) allow(state, sizeof state);
  check(&run);
}

/* ---- sums of pieces ---- */

/* Returns numbers of very different sizes, so that every order of additions has another sum. */
static float next_number(uint32_t *seed)
{
  *seed = *seed * 1664525u + 1013904223u;
  return ldexpf((float)(*seed >> 8) - 0x1p23f, (int)(*seed >> 4 & 15) - 30);
}

/* Adds `n` pieces, which are `gap` numbers longer than `count`. `in_place`: the first piece is the
 * result. */
static void check_add(uint32_t pairs, uint32_t n, uint32_t count, uint32_t gap, bool in_place)
{
  enum { MOST = 70, LONGEST = 1030 };
  static _Alignas(8) float from[MOST * LONGEST], to[LONGEST];
  uint32_t apart = count + gap, seed = n;
  for (uint32_t i = 0; i < n * apart; i++) from[i] = next_number(&seed);
  float *out = in_place ? from : to;
  Launch run = {.kernel = pairs ? "ampc_add_pairs" : "ampc_add",
                .text = TEXT_add,
                .out = (char *)out,
                .out_bytes = count * sizeof *out,
                .grid = (count + BLOCK * (1 + pairs) - 1) / (BLOCK * (1 + pairs))};
  const uint64_t args[] = {(uintptr_t)out, (uintptr_t)from, apart * sizeof *from, n, count};
  for (int i = 0; i < 5; i++) run.args[i] = (void *)(uintptr_t)args[i];
  begin_allowing();
  allow(out, run.out_bytes);
  for (uint32_t i = 0; i < n; i++) allow(from + i * apart, count * sizeof *from);
  check(&run);
}

/* Rounds numbers of all kinds to bf16, and adds `n` pieces of what that gives. */
static void check_bf16(uint32_t n, uint32_t count)
{
  enum { MOST = 70, LONGEST = 300 };
  static float from[MOST * LONGEST], sums[LONGEST];
  static uint16_t rounded[MOST * LONGEST];
  static const uint32_t odd[] = {0x7f7fffff, 0x7f800000, 0x7f800001,
                                 0xffffffff, 0x80000000, 0x17fff};
  uint32_t all = n * count, seed = n;
  for (uint32_t i = 0; i < all; i++) from[i] = next_number(&seed);
  for (uint32_t i = 0; n == 1 && i < sizeof odd / sizeof *odd; i++) memcpy(&from[i], &odd[i], 4);
  for (uint32_t i = 0; i < 64; i++) memset((char *)(from + 8 + i), i & 1 ? 0x80 : 0, 2); /* ties */
  Launch rounds = {.kernel = "ampc_round_bf16",
                   .text = TEXT_add,
                   .args = {rounded, from, (void *)(uintptr_t)all},
                   .out = (char *)rounded,
                   .out_bytes = all * sizeof *rounded,
                   .grid = (all + BLOCK - 1) / BLOCK};
  begin_allowing();
  allow(rounded, rounds.out_bytes);
  allow(from, all * sizeof *from);
  check(&rounds);
  Launch adds = {.kernel = "ampc_add_bf16",
                 .text = TEXT_add,
                 .args = {sums, rounded, (void *)(uintptr_t)(count * sizeof *rounded),
                          (void *)(uintptr_t)n, (void *)(uintptr_t)count},
                 .out = (char *)sums,
                 .out_bytes = count * sizeof *sums,
                 .grid = (count + BLOCK - 1) / BLOCK};
  begin_allowing();
  allow(sums, adds.out_bytes);
  allow(rounded, rounds.out_bytes);
  check(&adds);
}

/* ---- relu ---- */

/* A type: its sign bit, +inf and 1. */
typedef struct Type {
  const char *kernel;
  uint32_t bytes;
  uint64_t sign, inf, one;
} Type;
static const Type types[] = {{"ampc_relu16", 2, 0x8000, 0x7c00, 0x3c00},
                             {"ampc_relu16", 2, 0x8000, 0x7f80, 0x3f80},
                             {"ampc_relu32", 4, 0x80000000, 0x7f800000, 0x3f800000},
                             {"ampc_relu64", 8, 1ull << 63, 0x7ffull << 52, 0x3ffull << 52}};
enum { KINDS = 8, NUMBERS = 40 * KINDS, COLUMNS = 2 * KINDS, GAP = 3, ROW = COLUMNS + GAP };
enum { ALL = NUMBERS / COLUMNS * ROW };

/* Returns a number of some kind, with either sign: zero, the smallest and the largest subnormal
 * number, the smallest normal number, one, the largest number, infinity, NaN. */
static uint64_t number(const Type *t, int i)
{
  uint64_t normal = t->inf & -t->inf;
  const uint64_t kinds[KINDS] = {0, 1, normal - 1, normal, t->one, t->inf - 1, t->inf, t->inf + 1};
  return kinds[i % KINDS] | (i / KINDS % 2 ? t->sign : 0);
}

/* Sets numbers below zero to zero. NaN and -0 stay, and so do the gaps between rows. */
static void relu_twin(void *const *args, unsigned block, unsigned n_blocks)
{
  uint64_t sign = (uint64_t)args[2] - 1, inf = (uint64_t)args[3], n = (uint64_t)args[1];
  uint64_t columns = (uint64_t)args[4], gap = (uint64_t)args[5];
  size_t bytes = sign >> 63 ? 8 : sign >> 31 ? 4 : 2;
  (void)n_blocks;
  for (uint64_t i = 0; block == 0 && i < n; i++) {
    uint64_t bits = 0, rest;
    char *at = (char *)args[0] + (i + i / columns * gap) * bytes;
    memcpy(&bits, at, bytes);
    rest = bits & ~sign;
    if ((bits & sign) && rest != 0 && rest <= inf) memset(at, 0, bytes);
  }
}

static void check_relu(const Type *t)
{
  static uint64_t space[ALL];
  char *x = (char *)space;
  for (int i = 0; i < ALL; i++) {
    bool in_gap = i % ROW >= COLUMNS;
    uint64_t bits = in_gap ? t->sign | t->one : number(t, i / ROW * COLUMNS + i % ROW);
    memcpy(x + (uint32_t)i * t->bytes, &bits, t->bytes);
  }
  Launch run = {.kernel = t->kernel,
                .text = TEXT_relu,
                .twin = relu_twin,
                .args = {x, (void *)NUMBERS, (void *)(t->sign + 1), (void *)t->inf, (void *)COLUMNS,
                         (void *)GAP},
                .out = x,
                .out_bytes = ALL * t->bytes,
                .grid = (NUMBERS + BLOCK - 1) / BLOCK};
  begin_allowing();
  for (uint32_t i = 0; i < ALL; i += ROW) allow(x + i * t->bytes, COLUMNS * t->bytes);
  check(&run);
}

int ptx_check_runtime(int argc, char **argv)
{
  Arena *arena = arena_create();
  TestRun edits = {0};
  bool mutate = argc == 2 && strcmp(argv[0], "--mutate") == 0 && mutation_set(&edits, argv[1]);
  for (int i = 0; i < TEXTS; i++) {
    text_init(&edited[i], arena);
    text_puts(&edited[i], texts[i]);
    if (mutate) edits.edit(&edited[i], edits.edit_data);
  }
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) check_product(&products[i]);
  for (int mask = 0; mask < 3; mask++) {
    check_masks("ampc_bias", mask, false, 0, true);
    for (int how = 0; how < 8; how++)
      check_masks("ampc_kept", mask, how & 1, how & 2 ? 0x333333 : 0, how & 4);
  }
  static const uint32_t pieces[] = {1, 2, 3, 4, 5, 8, 11, 16, 70};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    check_add(0, pieces[i], 259, 2, i % 2);
    check_add(1, pieces[i], 1027, 3, i % 2);
    check_bf16(pieces[i], 259);
  }
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) check_relu(&types[i]);
  if (mutate && !edits.edits) fprintf(stderr, "simt_check: the text has no such place\n");
  printf(
      "ptx: the runtime's kernels, %u launches in three orders, %llu instructions of %u spellings, "
      "%u with a fault\n",
      launches, ptx_executed(), ptx_spellings(), wrong);
  arena_destroy(arena);
  return wrong ? WRONG : 0;
}
