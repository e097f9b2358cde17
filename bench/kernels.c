/* Times products and convolutions of real nets on this machine's CPU, as the runtime calls them.
 *
 *   bench_kernels [f32] [f16] [bf16]
 *
 * Prints a line for each kernel: microseconds and 10^9 operations per second (a multiply-add is
 * two), the best of several runs; for convolutions also the planned workspace. OMP_NUM_THREADS sets
 * the number of threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "runtime/base/convert.h"
#include "runtime/cpu/cpu.h"
#include "common/file.h"
#include "common/processors.h"

enum { BATCH = 128 };
static const double least_seconds = 0.2;

typedef struct Product {
  const char *name;
  int64_t m, n, k;
  bool trans_a, trans_b;
} Product;
static const Product products[] = {
    {"mlp fc1", BATCH, 512, 784, false, true},
    {"mlp fc1 weight", 512, 784, BATCH, true, false},
    {"mlp fc2", BATCH, 256, 512, false, true},
    {"mlp fc2 data", BATCH, 512, 256, false, false},
    {"mlp fc2 weight", 256, 512, BATCH, true, false},
    {"mlp fc3", BATCH, 10, 256, false, true},
    {"mlp fc3 data", BATCH, 256, 10, false, false},
    {"mlp fc3 weight", 10, 256, BATCH, true, false},
    {"mnist_cnn fc1", BATCH, 1000, 1024, false, true},
    {"mnist_cnn fc1 data", BATCH, 1024, 1000, false, false},
    {"mnist_cnn fc1 weight", 1000, 1024, BATCH, true, false},
    {"square 1024", 1024, 1024, 1024, false, false},
};

typedef struct Convolution {
  int64_t size, c, k, taps, stride, pad, groups;
} Convolution;
static const Convolution convolutions[] = {
    {28, 1, 32, 3, 1, 1, 1},      {28, 32, 32, 3, 1, 1, 1},   {28, 32, 64, 3, 1, 1, 1},
    {28, 64, 64, 2, 2, 0, 1},     {14, 32, 64, 3, 1, 1, 1},   {14, 64, 128, 3, 1, 1, 1},
    {14, 128, 128, 3, 1, 1, 1},   {14, 128, 128, 2, 2, 0, 1}, {7, 64, 128, 3, 1, 1, 1},
    {7, 128, 256, 3, 1, 1, 1},    {7, 256, 256, 2, 1, 0, 1},  {6, 256, 512, 3, 1, 1, 1},
    {6, 512, 512, 3, 1, 1, 1},    {6, 512, 512, 2, 2, 0, 1},  {3, 512, 1024, 3, 1, 1, 1},
    {14, 128, 128, 3, 1, 1, 128}, {14, 128, 256, 1, 1, 0, 1},
};

static Pool *pool;
static GemmCache *gemms;
static ConvCache *convs;

static void must(bool good)
{
  if (good) return;
  fprintf(stderr, "bench_kernels: %s\n", ampc_last_error());
  exit(1);
}

static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *memory(ampc_dtype type, int64_t elements)
{
  int64_t bytes = (elements * 4 + 63) / 64 * 64;
  void *m = aligned_alloc(64, (size_t)(bytes > 0 ? bytes : 64));
  if (!m) ampc_fail(AMPC_RUN_FAILED, "out of memory");
  must(m);
  for (int64_t i = 0; i < elements; i++)
    number_store(type, false, m, i, (double)(i * 7919 % 1009) / 1009 - 0.5);
  return m;
}

/* Returns the seconds of the fastest of many calls, without the first calls. */
static double best(void (*call)(void *context), void *context)
{
  double least = 1e9, begin = seconds();
  for (int i = 0; i < 5 || seconds() - begin < least_seconds; i++) {
    double start = seconds();
    call(context);
    double took = seconds() - start;
    if (i > 1 && took < least) least = took;
  }
  return least;
}

typedef struct GemmCall {
  ampc_gemm g;
  void *a, *b, *c, *workspace;
} GemmCall;

static void call_gemm(void *context)
{
  GemmCall *k = context;
  must(cpu_gemm(gemms, &k->g, &(GemmOperands){k->a, k->b, NULL, k->c, k->workspace}) == AMPC_OK);
}

static void bench_product(const Product *p, ampc_dtype type)
{
  GemmCall k = {.g = {.m = p->m,
                      .n = p->n,
                      .k = p->k,
                      .batch = 1,
                      .lda = p->trans_a ? p->m : p->k,
                      .ldb = p->trans_b ? p->k : p->n,
                      .ldc = p->n,
                      .trans_a = p->trans_a,
                      .trans_b = p->trans_b,
                      .a_type = type,
                      .b_type = type,
                      .c_type = p->trans_a ? AMPC_F32 : type}};
  k.g.workspace = ampc_gemm_workspace_cpu(&k.g, false);
  k.a = memory(type, p->m * p->k), k.b = memory(type, p->k * p->n), k.c = memory(type, p->m * p->n);
  k.workspace = memory(AMPC_F32, k.g.workspace / 4);
  double t = best(call_gemm, &k);
  double work = 2.0 * (double)(p->m * p->n * p->k);
  printf("%-5s product  %-22s [%4lld %4lld] x [%4lld %4lld] %9.1f us %7.1f GF/s\n",
         ampc_dtype_name(type), p->name, (long long)p->m, (long long)p->k, (long long)p->k,
         (long long)p->n, t * 1e6, work / t * 1e-9);
  free(k.a);
  free(k.b);
  free(k.c);
  free(k.workspace);
}

typedef struct ConvCall {
  ampc_conv d;
  void *x, *w, *y, *workspace;
} ConvCall;

static void call_conv(void *context)
{
  ConvCall *k = context;
  must(cpu_conv(convs, &k->d, &(ConvOperands){k->x, k->w, NULL, k->y, k->workspace}) == AMPC_OK);
}

static void bench_convolution(const Convolution *v, ampc_conv_kind kind, ampc_dtype type)
{
  static const char *const names[] = {"forward", "data", "weight"};
  int64_t out = (v->size + 2 * v->pad - v->taps) / v->stride + 1;
  ConvCall k = {.d = {.kind = kind,
                      .n = BATCH,
                      .c = v->c,
                      .k = v->k,
                      .groups = v->groups,
                      .spatial = 2,
                      .in = {v->size, v->size},
                      .kernel = {v->taps, v->taps},
                      .out = {out, out},
                      .stride = {v->stride, v->stride},
                      .pad = {v->pad, v->pad},
                      .dilation = {1, 1},
                      .x_type = type,
                      .w_type = kind == AMPC_CONV_WEIGHT ? AMPC_F32 : type,
                      .y_type = type}};
  k.d.workspace = ampc_conv_workspace_cpu(&k.d, false);
  int64_t weights = v->k * v->c / v->groups * v->taps * v->taps;
  k.x = memory(type, BATCH * v->size * v->size * v->c), k.w = memory(k.d.w_type, weights);
  k.y = memory(type, BATCH * out * out * v->k);
  k.workspace = memory(AMPC_F32, k.d.workspace / 4);
  double t = best(call_conv, &k);
  double work = 2.0 * (double)(BATCH * out * out * weights);
  printf(
      "%-5s %-8s %2lldx%-2lld %4lld -> %-4lld %lldx%lld stride %lld groups %-3lld %9.1f us %7.1f "
      "GF/s %6.1f MB\n",
      ampc_dtype_name(type), names[kind], (long long)v->size, (long long)v->size, (long long)v->c,
      (long long)v->k, (long long)v->taps, (long long)v->taps, (long long)v->stride,
      (long long)v->groups, t * 1e6, work / t * 1e-9, (double)k.d.workspace / 1e6);
  free(k.x);
  free(k.w);
  free(k.y);
  free(k.workspace);
}

static void bench_type(ampc_dtype type)
{
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) bench_product(&products[i], type);
  for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++)
    for (int kind = AMPC_CONV_FORWARD; kind <= AMPC_CONV_WEIGHT; kind++)
      if (convolutions[i].c > 1 || kind != AMPC_CONV_DATA) /* input images need no gradient */
        bench_convolution(&convolutions[i], (ampc_conv_kind)kind, type);
}

int main(int argc, char **argv)
{
  static const ampc_dtype types[] = {AMPC_F32, AMPC_F16, AMPC_BF16};
  pool = pool_create(ampc_processors());
  gemms = pool ? gemm_cache_create(pool, false) : NULL;
  convs = gemms ? conv_cache_create(pool, gemms, false) : NULL;
  if (!convs) ampc_fail(AMPC_RUN_FAILED, "out of memory");
  must(convs);
  printf("batch %d, %u threads\n", BATCH, pool_threads(pool));
  for (int t = 0; t < 3; t++) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; i++) wanted |= strcmp(argv[i], ampc_dtype_name(types[t])) == 0;
    if (wanted) bench_type(types[t]);
  }
  printf("scratch space of the library: %lld bytes\n",
         (long long)(gemm_cache_bytes(gemms) + conv_cache_bytes(convs)));
  conv_cache_free(convs);
  gemm_cache_free(gemms);
  pool_free(pool);
  return file_end_stdout("bench_kernels", 0);
}
