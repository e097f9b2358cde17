/* Products of unusual sizes, types and strides by runtime/cuda/product.cu. A plain loop runs first;
 * it also determines the allowed accesses. Then the kernel's threads run, in several orders. Both
 * sum in the same order, so all bits must be equal. The values are checked too. */
#include "product.h"
#include "build.h"
#include "machine.h"
#include "memory.h"
#include "runner/selftest/run.h"
#include "runtime/base/convert.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  ARGUMENTS = 18,
  BLOCK = 256,
  TILE = 64,
  ELEMENTS = 1 << 16,
  SHIFT = 1,
  WRONG = 5,
  WIDEST = 8
};

/* A kernel as one of its threads, and the plain loops. a[] holds their arguments in order. */
static const char entries[] =
    "\n#define N(i) ((long long)a[i])\n"
    "#define THREAD(NAME, KERNEL) \\\n"
    "__attribute__((no_sanitize(\"thread\"))) void NAME(void *const *a) \\\n"
    "{ \\\n"
    "  KERNEL(a[0], a[1], a[2], a[3], N(4), N(5), N(6), N(7), N(8), N(9), N(10), N(11), N(12), \\\n"
    "         N(13), N(14), N(15), N(16), N(17)); \\\n"
    "}\n"
    "THREAD(product_thread, ampc_product)\n"
    "THREAD(product_thread_f64, ampc_product_f64)\n"
    "static double double_at(const void *x, int type, long long i)\n"
    "{\n"
    "  return (void)type, ((const double *)x)[i];\n"
    "}\n"
    "static void put_double(void *x, int type, long long i, double value)\n"
    "{\n"
    "  (void)type, ((double *)x)[i] = value;\n"
    "}\n"
    "#define PLAIN(NAME, REAL, AT, PUT) \\\n"
    "__attribute__((no_sanitize(\"thread\"))) void NAME(void *const *a) \\\n"
    "{ \\\n"
    "  for (long long l = 0; l < N(18); l++) \\\n"
    "    for (long long i = 0; i < N(4); i++) \\\n"
    "      for (long long j = 0; j < N(5); j++) { \\\n"
    "        long long at = l * N(14) + i * N(13) + j, t = N(15); \\\n"
    "        REAL sum = 0; \\\n"
    "        for (long long k = 0; k < N(6); k++) \\\n"
    "          sum += AT(a[0], t & 15, l * N(9) + i * N(7) + k * N(8)) * \\\n"
    "                 AT(a[1], t >> 4 & 15, l * N(12) + j * N(10) + k * N(11)); \\\n"
    "        if (N(16)) sum += AT(a[3], t >> 8 & 15, at); \\\n"
    "        if (a[2]) sum += AT(a[2], t >> 12 & 15, j); \\\n"
    "        PUT(a[3], t >> 8 & 15, at, N(17) && sum < 0 ? 0 : sum); \\\n"
    "      } \\\n"
    "}\n"
    "PLAIN(product_plain, float, number_at, put_number)\n"
    "PLAIN(product_plain_f64, double, double_at, put_double)\n";

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

typedef struct Operand {
  ampc_dtype type;
  char *bytes; /* space for ELEMENTS of the type */
  double *numbers;
} Operand;

static Operand operand(ampc_dtype type, bool wide, unsigned seed)
{
  Operand o = {type, calloc(ELEMENTS, WIDEST), calloc(ELEMENTS, sizeof(double))};
  if (!o.bytes || !o.numbers) abort();
  for (int i = 0; i < ELEMENTS; i++) { /* eighths: sums are exact, only stores round */
    seed = seed * 1664525u + 1013904223u;
    number_store(type, wide, o.bytes, i, ((int)(seed >> 24) - 128) / 8.0);
    o.numbers[i] = number_load(type, wide, o.bytes, i);
  }
  return o;
}

static void expect(const OwnProduct *p, const Operand *o, char *out)
{
  memcpy(out, o[3].bytes, ELEMENTS * WIDEST);
  for (int64_t l = 0; l < p->batch; l++)
    for (int64_t i = 0; i < p->m; i++)
      for (int64_t j = 0; j < p->n; j++) {
        int64_t at = l * p->c_stride + i * p->c_row + j;
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++)
          sum += o[0].numbers[l * p->a_stride + i * p->a_row + k * p->a_step] *
                 o[1].numbers[l * p->b_stride + j * p->b_column + k * p->b_step];
        if (p->accumulate) sum += o[3].numbers[at];
        if (p->has_bias) sum += o[2].numbers[j];
        if (p->relu && sum < 0) sum = 0;
        number_store(p->c, p->wide, out, at, sum);
      }
}

static bool run(const SimtLaunch *l, WordList *words, bool twin, SimtFault *fault)
{
  MemoryRun memory = {.shift = SHIFT,
                      .shared = l->shared,
                      .shared_size = l->shared_size,
                      .twin = twin,
                      .words = words};
  bool waited;
  memory_begin(&memory);
  bool good = simt_run(l, fault, &waited);
  memory_end();
  return good;
}

/* Checks a product. Returns false after it printed why. */
static bool check_one(const OwnProduct *p, void *library)
{
  static WordList words;
  static char want[ELEMENTS * WIDEST], before[ELEMENTS * WIDEST];
  int64_t types = p->a | p->b << 4 | p->c << 8 | p->bias << 12;
  Operand o[] = {operand(p->a, p->wide, 1), operand(p->b, p->wide, 2), operand(p->bias, p->wide, 3),
                 operand(p->c, p->wide, 4)};
  const int64_t numbers[] = {p->m,        p->n,        p->k,          p->a_row,    p->a_step,
                             p->a_stride, p->b_column, p->b_step,     p->b_stride, p->c_row,
                             p->c_stride, types,       p->accumulate, p->relu,     p->batch};
  void *args[ARGUMENTS + 1] = {o[0].bytes, o[1].bytes, p->has_bias ? o[2].bytes : NULL, o[3].bytes};
  for (int i = 4; i <= ARGUMENTS; i++) args[i] = (void *)(uintptr_t)numbers[i - 4];
  SimtLaunch l = {.args = args, .grid = 1, .block = 1};
  SimtFault fault = {0};
  expect(p, o, want);
  memcpy(before, o[3].bytes, sizeof before);
  *(void **)&l.thread = dlsym(library, p->wide ? "product_plain_f64" : "product_plain");
  bool good = run(&l, &words, true, &fault);
  good = good && memcmp(want, o[3].bytes, sizeof want) == 0;
  if (!good) fprintf(stderr, "simt: FAILED ampc_product: its numbers; %s\n", fault.text);
  *(void **)&l.thread = dlsym(library, p->wide ? "product_thread_f64" : "product_thread");
  l.grid = (unsigned)((p->m + TILE - 1) / TILE * ((p->n + TILE - 1) / TILE) * p->batch);
  l.block = BLOCK;
  simt_find_shared(library, &l.shared, &l.shared_size);
  for (; good && l.order < SIMT_ORDERS; l.order++) {
    memcpy(o[3].bytes, before, sizeof before);
    good = run(&l, &words, false, &fault);
    if (!good) fprintf(stderr, "simt: FAILED ampc_product: %s\n", fault.text);
    if (good && memcmp(want, o[3].bytes, sizeof want) != 0) {
      fprintf(stderr, "simt: FAILED ampc_product: another number than the plain loop\n");
      good = false;
    }
  }
  for (int i = 0; i < 4; i++) {
    free(o[i].bytes);
    free(o[i].numbers);
  }
  return good;
}

int check_product(int argc, char **argv)
{
  Arena *arena = arena_create();
  Text text;
  TestRun edits = {0};
  char part[4096];
  void *library = NULL;
  int wrong = 0;
  FILE *f = fopen(argv[0], "rb");
  if (!f) return WRONG;
  text_init(&text, arena);
  for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) text_add(&text, part, n);
  fclose(f);
  if (argc == 3 && mutation_set(&edits, argv[2])) edits.edit(&text, edits.edit_data);
  if (argc == 3 && !edits.edits) fprintf(stderr, "simt_check: the text has no such place\n");
  text_puts(&text, entries);
  if (simt_build_text(&text, arena, &library)) {
    fprintf(stderr, "simt_check: %s\n", ampc_last_error());
    return WRONG;
  }
  size_t n = sizeof products / sizeof *products;
  for (size_t i = 0; i < n; i++) wrong += !check_one(&products[i], library);
  printf("simt: %zu products, %d with a fault\n", n, wrong);
  dlclose(library);
  arena_destroy(arena);
  return wrong ? WRONG : 0;
}
