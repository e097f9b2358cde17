/* The CUDA device on the mock, called like the runtime calls it: products that jobs rarely contain,
 * calls in other threads, the order of copies and steps. */
#include "ampc_rt.h"
#include "cases.h"
#include "runtime/base/convert.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/device.h"
#include "runtime/plan/conv_columns.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STATE = 4096, ROOM = 1 << 16 };

static ampc_block block = {.kind = AMPC_INFER, .name = "f", .batch = 1, .n_variants = 1};
static ampc_program program = {
    .name = "test",
    .source = "test.amp",
    .target = "sm_90",
    .precision = "f32",
    .space_bytes = {[AMPC_STATE] = STATE, [AMPC_INPUT] = 1000, [AMPC_WORK] = ROOM},
    .blocks = &block,
    .n_blocks = 1};

static Device *device;
static void *state, *room;

static Device *new_device(void)
{
  Device *d;
  if (cuda_device_open(&program, 1, ANY_GPU, &d)) fprintf(stderr, "%s\n", ampc_last_error());
  MUST(d);
  return d;
}

static void open_all(void)
{
  device = new_device();
  MUST(device->ops->alloc(device, STATE, &state) == AMPC_OK);
  MUST(device->ops->alloc(device, ROOM, &room) == AMPC_OK);
}

static void close_all(void)
{
  device->ops->release(device, state);
  device->ops->release(device, room);
  device->ops->close(device);
}

/* ---- opening and closing during a recording ---- */

static void *open_and_close(void *unused)
{
  Device *d = new_device();
  void *memory;
  MUST(d->ops->alloc(d, 1024, &memory) == AMPC_OK);
  d->ops->release(d, memory);
  d->ops->close(d);
  return unused;
}

/* While the body runs the second time, its step is being recorded. Then another thread opens a
 * device; this thread waits for it at most 0.2 s. */
static pthread_t other;
static int runs;

static ampc_status body_beside(void *unused)
{
  (void)unused;
  if (++runs == 2) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 200000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    MUST(pthread_create(&other, NULL, open_and_close, NULL) == 0);
    if (pthread_timedjoin_np(other, NULL, &until) == 0) other = 0;
  }
  return device->ops->fill(device, room, 0, 16);
}

static int opens_beside_a_recording(void)
{
  open_all();
  CHECK(device->ops->step(device, 0, state, body_beside, NULL) == AMPC_OK);
  if (other) pthread_join(other, NULL);
  CHECK(mock_count("captures") == 1 && mock_count("meanwhile") == 0);
  close_all();
  CHECK(mock_count("held") == 0);
  return check_failures;
}

static int one_library(void)
{
  open_all();
  long libraries = mock_count("libraries");
  Device *second = new_device();
  CHECK(libraries == 1 && mock_count("libraries") == 1);
  second->ops->close(second);
  close_all();
  CHECK(mock_count("held") == 0);
  open_all(); /* a new device after the last user closed the old one */
  CHECK(mock_count("libraries") == 2);
  close_all();
  CHECK(mock_count("held") == 0);
  return check_failures;
}

/* ---- the device's own memory ---- */

/* Checks the device's own memory: a copy of STATE, the second half of INPUT (1024 bytes). */
static int memory_beside(void)
{
  open_all();
  CHECK(device->ops->library_bytes(device) == STATE + 1024);
  CHECK(cuda_bytes_beside(&program, 3) == 2 * device_step(&program, AMPC_STATE) + STATE + 3 * 1024);
  close_all();
  return check_failures;
}

/* ---- scratch of convolutions ---- */

/* Checks scratch without cuDNN: partial sums for a stem's weight gradient, no bytes for the stem
 * itself, columns and a product's workspace for a deeper convolution. */
static int scratch_of_convolutions(void)
{
  ampc_conv stem = {.kind = AMPC_CONV_FORWARD, .spatial = 2, .n = 4, .c = 1, .k = 8, .groups = 1};
  for (int i = 0; i < 2; i++) stem.in[i] = stem.out[i] = 8, stem.kernel[i] = 3;
  for (int i = 0; i < 2; i++) stem.stride[i] = stem.dilation[i] = stem.pad[i] = 1;
  stem.x_type = stem.w_type = stem.y_type = AMPC_F32;
  ampc_conv weights = stem, deep = stem;
  weights.kind = AMPC_CONV_WEIGHT;
  deep.c = 64;
  ConvColumns sums = ampc_conv_columns(&weights, false), columns = ampc_conv_columns(&deep, false);
  MUST(sums.whole && sums.bytes > 0 && !columns.whole && columns.bytes > 0);
  ampc_use_cudnn(false);
  open_all();
  int64_t beside = cuda_bytes_beside(&program, 1);
  CHECK(device->ops->prepare_conv(device, &stem) == AMPC_OK);
  CHECK(device->ops->library_bytes(device) == beside);
  CHECK(device->ops->prepare_conv(device, &weights) == AMPC_OK);
  CHECK(device->ops->library_bytes(device) == beside + sums.bytes);
  CHECK(device->ops->prepare_conv(device, &deep) == AMPC_OK);
  CHECK(device->ops->library_bytes(device) ==
        beside + columns.bytes + ampc_gemm_workspace_cuda(cuda_of(device)->capability));
  close_all();
  return check_failures;
}

/* ---- products ---- */

enum { M = 5, N = 6, K = 4, BATCH = 3 };

/* Returns a product of small integers, exact in any order of summation and with any rounding. */
static ampc_gemm small_product(void)
{
  return (ampc_gemm){.m = M,
                     .n = N,
                     .k = K,
                     .batch = BATCH,
                     .lda = K,
                     .ldb = N,
                     .ldc = N,
                     .stride_a = M * K,
                     .stride_b = K * N,
                     .stride_c = M * N,
                     .has_bias = true,
                     .a_type = AMPC_F16,
                     .b_type = AMPC_F16,
                     .c_type = AMPC_F16,
                     .bias_type = AMPC_F16,
                     .workspace = 8192};
}

enum { A = 0, B = 4096, BIAS = 8192, C = 12288, WORKSPACE = 16384, NUMBERS = 1024 };

static char *place(int64_t offset)
{
  return (char *)room + offset;
}

typedef struct Numbers {
  float a[NUMBERS], b[NUMBERS], bias[NUMBERS], c[NUMBERS];
} Numbers;
static Numbers numbers;
static int64_t bias_at;

static void put(int64_t offset, const float *x, int n)
{
  char bytes[NUMBERS * 2];
  convert_narrow(AMPC_F16, x, bytes, n);
  MUST(device->ops->copy_in(device, place(offset), bytes, n * 2) == AMPC_OK);
}

/* Puts a, b and the bias on the device, the bias `bias_at` bytes after its usual place. */
static void put_numbers(void)
{
  for (int i = 0; i < NUMBERS; i++) {
    numbers.a[i] = (float)(i * 7 % 11 - 5);
    numbers.b[i] = (float)(i * 5 % 13 - 6);
    numbers.bias[i] = (float)(i % 3);
  }
  put(A, numbers.a, BATCH * M * K);
  put(B, numbers.b, BATCH * K * N);
  put(BIAS + bias_at, numbers.bias, N);
}

static float expected_at(const ampc_gemm *g, int64_t l, int64_t i, int64_t j)
{
  float sum = numbers.bias[j];
  for (int64_t k = 0; k < K; k++)
    sum += numbers.a[l * g->stride_a + i * K + k] * numbers.b[l * g->stride_b + k * N + j];
  return g->relu && sum < 0 ? 0 : sum;
}

static void check_product(const ampc_gemm *g)
{
  char bytes[NUMBERS * 2];
  int64_t n = g->batch * M * N;
  MUST(device->ops->copy_out(device, bytes, place(C), n * 2) == AMPC_OK);
  convert_widen(AMPC_F16, bytes, numbers.c, n);
  for (int64_t l = 0; l < g->batch; l++)
    for (int64_t i = 0; i < M; i++)
      for (int64_t j = 0; j < N; j++) {
        float got = numbers.c[l * g->stride_c + i * N + j], want = expected_at(g, l, i, j);
        CHECK_MSG(got == want, "[%lld, %lld, %lld]: %g, expected %g", (long long)l, (long long)i,
                  (long long)j, got, want);
      }
}

static ampc_status multiply(void *context)
{
  return device->ops->gemm(
      device, context,
      &(GemmOperands){place(A), place(B), place(BIAS + bias_at), place(C), place(WORKSPACE)});
}

/* Runs the product in a step: tries it out, records it, replays it. */
static int product_step(ampc_gemm g)
{
  open_all();
  put_numbers();
  ampc_status status = device->ops->step(device, 0, state, multiply, &g);
  if (!status) check_product(&g);
  if (status) fprintf(stderr, "%s\n", ampc_last_error());
  return status ? (int)status : check_failures;
}

static int plain_product(void)
{
  return product_step(small_product());
}

static int unfit_algorithms(void)
{
  setenv("MOCK_BLAS_UNFIT", "3", 1);
  return product_step(small_product());
}

static int only_unfit_algorithms(void)
{
  setenv("MOCK_BLAS_UNFIT", "100", 1);
  return product_step(small_product());
}

static int only_unfit_relu(void)
{
  ampc_gemm g = small_product();
  g.relu = true;
  setenv("MOCK_BLAS_UNFIT", "100", 1);
  return product_step(g);
}

/* Tests a weight gradient: A is stored as [K, M], B as [N, K], the result is added to C in f32. */
static int only_unfit_gradient(void)
{
  ampc_gemm g = small_product();
  float c[M * N];
  g.batch = 1, g.stride_a = g.stride_b = g.stride_c = 0;
  g.trans_a = g.trans_b = g.accumulate = true;
  g.lda = M, g.ldb = K;
  g.has_bias = false;
  g.c_type = AMPC_F32;
  setenv("MOCK_BLAS_UNFIT", "100", 1);
  open_all();
  put_numbers();
  for (int i = 0; i < M * N; i++) c[i] = (float)i;
  MUST(device->ops->copy_in(device, place(C), c, sizeof c) == AMPC_OK);
  ampc_status status = multiply(&g);
  MUST(device->ops->copy_out(device, c, place(C), sizeof c) == AMPC_OK);
  for (int i = 0; i < M * N; i++) {
    float want = (float)i;
    for (int k = 0; k < K; k++) want += numbers.a[k * M + i / N] * numbers.b[i % N * K + k];
    CHECK_MSG(c[i] == want, "[%d]: %g, expected %g", i, c[i], want);
  }
  close_all();
  CHECK(mock_count("held") == 0);
  return status ? (int)status : check_failures;
}

/* Multiplies a [m, k] by b [k, n] in a step, with small integers in f32 or double. */
static ampc_status multiply_apart(void *context)
{
  void **at = context;
  return device->ops->gemm(device, at[0], &(GemmOperands){at[1], at[2], NULL, at[3], at[4]});
}

static double small_number(int64_t i)
{
  return (double)(i * 7 % 11 - 5);
}

static void *numbers_apart(int64_t n)
{
  void *at, *bytes = malloc((size_t)n * sizeof(double));
  MUST(bytes && device->ops->alloc(device, n * (int64_t)sizeof(double), &at) == AMPC_OK);
  for (int64_t i = 0; i < n; i++) number_store(AMPC_F32, program.real64, bytes, i, small_number(i));
  MUST(device->ops->copy_in(device, at, bytes, n * (int64_t)sizeof(double)) == AMPC_OK);
  free(bytes);
  return at;
}

/* Checks c, whose gaps between rows keep their numbers. */
static void check_apart(const void *at, const ampc_gemm *g)
{
  int64_t all = g->m * g->ldc, bytes = all * ampc_element_size(&program, AMPC_F32);
  void *got = malloc((size_t)bytes);
  MUST(got && !device->ops->copy_out(device, got, at, bytes));
  for (int64_t i = 0; i < all; i++) {
    int64_t row = i / g->ldc, column = i % g->ldc, k = column < g->n ? g->k : 0;
    double want = k ? 0 : small_number(i), is = number_load(AMPC_F32, program.real64, got, i);
    for (int64_t l = 0; l < k; l++)
      want += small_number(row * k + l) * small_number(l * g->n + column);
    CHECK_MSG(is == want, "[%lld]: %g, expected %g", (long long)i, is, want);
  }
  free(got);
}

static int odd_product(int64_t m, int64_t n, int64_t k, bool wide)
{
  ampc_gemm g = {.m = m, .n = n, .k = k, .batch = 1, .lda = k, .ldb = n, .workspace = ROOM};
  g.ldc = (n + 3) / 4 * 4;
  g.a_type = g.b_type = g.c_type = AMPC_F32;
  program.real64 = wide;
  open_all();
  void *at[] = {&g, numbers_apart(m * k), numbers_apart(k * n), numbers_apart(m * g.ldc), room};
  ampc_status status = device->ops->step(device, 0, state, multiply_apart, at);
  if (status) fprintf(stderr, "%s\n", ampc_last_error());
  if (!status) check_apart(at[3], &g);
  for (int i = 1; i < 4; i++) device->ops->release(device, at[i]);
  close_all();
  CHECK(mock_count("held") == 0);
  return status ? (int)status : check_failures;
}

static int one_row(void)
{
  return odd_product(1, 70, 5, false);
}

static int one_column(void)
{
  return odd_product(70, 1, 1, false);
}

static int odd_columns(void)
{
  return odd_product(3, 515, 4, false);
}

static int one_row_of_doubles(void)
{
  return odd_product(1, 70, 5, true);
}

static int very_long(void)
{
  return odd_product(65535 * 32, 2, 2, false);
}

static int only_unfit_doubles(void)
{
  setenv("MOCK_BLAS_UNFIT", "100", 1);
  return odd_product(5, 6, 4, true);
}

static int nothing_to_sum(void)
{
  ampc_gemm g = small_product();
  char bytes[NUMBERS * 2];
  g.k = 0;
  open_all();
  put_numbers();
  ampc_status status = multiply(&g);
  fprintf(stderr, "modules: %ld\n", mock_count("modules"));
  MUST(device->ops->copy_out(device, bytes, place(C), BATCH * M * N * 2) == AMPC_OK);
  convert_widen(AMPC_F16, bytes, numbers.c, BATCH * M * N);
  for (int i = 0; i < BATCH * M * N; i++) CHECK(numbers.c[i] == numbers.bias[i % N]);
  close_all();
  return status ? (int)status : check_failures;
}

static int bias_between(void)
{
  bias_at = 6;
  return product_step(small_product());
}

static int bias_without_room(void)
{
  ampc_gemm g = small_product();
  bias_at = 6;
  g.workspace = 255;
  return product_step(g);
}

static int batch_one_by_one(void)
{
  setenv("MOCK_BLAS_ALONE", "1", 1);
  return product_step(small_product());
}

/* ---- NaN through a relu ---- */

/* Checks that a NaN stays. The first of three rows is NaN because of one of its operands. `gap`:
 * elements between the rows of the result. */
static int keep_nan(const char *lost, int gap)
{
  ampc_gemm g = small_product();
  char bytes[NUMBERS * 2];
  const int row = N + gap, all = BATCH * M * row;
  g.relu = true;
  g.ldc = row;
  g.stride_c = M * row;
  setenv("MOCK_BLAS_LOSE", lost, 1);
  open_all();
  put_numbers();
  put(A, (float[]){NAN}, 1);
  ampc_status status = device->ops->step(device, 0, state, multiply, &g);
  MUST(device->ops->copy_out(device, bytes, place(C), all * 2) == AMPC_OK);
  convert_widen(AMPC_F16, bytes, numbers.c, all);
  for (int j = 0; j < N; j++) CHECK_MSG(isnan(numbers.c[j]), "NaN became %g", numbers.c[j]);
  for (int i = row; i < all; i++) {
    if (i % row >= N) continue;
    float want = expected_at(&g, i / (M * row), i / row % M, i % row);
    CHECK_MSG(numbers.c[i] == want, "[%d]: %g, expected %g", i, numbers.c[i], want);
  }
  fprintf(stderr, "modules: %ld\n", mock_count("modules"));
  close_all();
  CHECK(mock_count("held") == 0);
  return status ? (int)status : check_failures;
}

static int nan_kept(void)
{
  return keep_nan("0", 0);
}

static int nan_lost_by_some(void)
{
  return keep_nan("3", 1);
}

static int nan_lost_by_all(void)
{
  return keep_nan("100", 2);
}

static int nan_lost_in_a_batch(void)
{
  setenv("MOCK_BLAS_ALONE", "1", 1);
  return keep_nan("100", 0);
}

/* Checks numbers of each kind and type: relu turns negative ones into 0 and changes no others. */
static int own_relu(void)
{
  static const float in[] = {1.5f, -1.5f, 0, -0.0f, INFINITY, -INFINITY, NAN, -0x1p-20f};
  enum { COUNT = sizeof in / sizeof *in };
  static const ampc_dtype types[] = {AMPC_F16, AMPC_BF16, AMPC_F32};
  open_all();
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    float x[COUNT * 40], y[COUNT * 40]; /* more than one block of threads */
    char bytes[sizeof x];
    int n = COUNT * 40 - 1;
    int64_t size = ampc_dtype_size(types[t]);
    for (int i = 0; i < COUNT * 40; i++) x[i] = in[i % COUNT];
    convert_narrow(types[t], x, bytes, COUNT * 40);
    MUST(device->ops->copy_in(device, room, bytes, COUNT * 40 * size) == AMPC_OK);
    MUST(cuda_relu(cuda_of(device), types[t], room, &(Rows){1, n, 5}) == AMPC_OK);
    MUST(device->ops->copy_out(device, bytes, room, COUNT * 40 * size) == AMPC_OK);
    convert_widen(types[t], bytes, y, COUNT * 40);
    for (int i = 0; i < COUNT * 40; i++) {
      float want = i < n && x[i] < 0 ? 0 : x[i];
      bool same = isnan(want) ? isnan(y[i]) : want == y[i] && signbit(want) == signbit(y[i]);
      CHECK_MSG(same || i == n, "%s: %g became %g", ampc_dtype_name(types[t]), x[i], y[i]);
    }
    CHECK(y[n] < 0); /* past the end: unchanged */
  }
  close_all();
  return check_failures;
}

/* Checks that ptxas accepts the text for several GPUs. Skipped if there is no ptxas. */
static int is_ptx(const char *text)
{
  static const char *const targets[] = {"sm_75", "sm_87", "sm_90", "sm_120"};
  if (system("PATH=$PATH:/usr/local/cuda/bin; command -v ptxas >/dev/null")) return 0;
  char name[] = "/tmp/kernel.XXXXXX", line[256];
  int file = mkstemp(name);
  size_t size = strlen(text);
  MUST(file >= 0 && write(file, text, size) == (ssize_t)size);
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    snprintf(line, sizeof line, "PATH=$PATH:/usr/local/cuda/bin ptxas -arch=%s -o /dev/null %s >&2",
             targets[i], name);
    CHECK_MSG(system(line) == 0, "ptxas refuses it for %s", targets[i]);
  }
  close(file);
  unlink(name);
  return check_failures;
}

static int relu_text(void)
{
  return is_ptx(cuda_relu_ptx);
}

static int product_text_of_ours(void)
{
  return is_ptx(cuda_product_ptx);
}

static const Case cases[] = {
    {"devices open and close beside a recording", opens_beside_a_recording, 0, NULL},
    {"devices share a library", one_library, 0, NULL},
    {"memory beside the spaces", memory_beside, 0, NULL},
    {"scratch of convolutions", scratch_of_convolutions, 0, NULL},
    {"a product", plain_product, 0, NULL},
    {"algorithms that do not run", unfit_algorithms, 0, NULL},
    {"no algorithm runs", only_unfit_algorithms, 0,
     "note: product of 3 times f16 [5, 4] and f16 [4, 6] to f16 with bias by our own kernel"},
    {"and the product has a relu", only_unfit_relu, 0, "and relu by our own kernel"},
    {"and the product is a gradient of weights", only_unfit_gradient, 0, "by our own kernel"},
    {"and in doubles", only_unfit_doubles, 0, "by our own kernel"},
    {"one row", one_row, 0,
     "note: product of f32 [1, 5] and f32 [5, 70] to f32 by our own kernel: cuBLASLt "
     "has no algorithm for it that runs"},
    {"one column, one step", one_column, 0,
     "note: product of f32 [70, 1] and f32 [1, 1] to f32 by our own"},
    {"odd columns", odd_columns, 0, NULL},
    {"one row of doubles", one_row_of_doubles, 0, "by our own kernel"},
    {"more rows than the library counts", very_long, 0, "by our own kernel"},
    {"nothing to sum", nothing_to_sum, 0, "modules: 1"},
    {"a bias between two places", bias_between, 0, NULL},
    {"and no room for it", bias_without_room, 0, "by our own kernel"},
    {"a batch that the library refuses", batch_one_by_one, 0, NULL},
    {"NaN through a relu", nan_kept, 0, "modules: 0"},
    {"NaN that some algorithms lose", nan_lost_by_some, 0, "modules: 0"},
    {"NaN that all algorithms lose", nan_lost_by_all, 0, "modules: 1"},
    {"and in a batch one by one", nan_lost_in_a_batch, 0, "modules: 1"},
    {"a relu of our own", own_relu, 0, NULL},
    {"its text", relu_text, 0, NULL},
    {"the text of our product", product_text_of_ours, 0, NULL},
};

static void nothing(void)
{
}

int main(void)
{
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&cases[i], nothing);
  return check_done();
}
