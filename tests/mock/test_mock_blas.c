/* The mock's products against sums in double, and the misuses of cuBLASLt that it detects. */
#include "blas.h"
#include "cases.h"
#include "runtime/base/convert.h"
#include <math.h>

enum { ROOM = 1 << 20, WORKSPACE = 1 << 16 };

static CuStream stream;
static LtHandle library;
static CuPointer a_memory, b_memory, d_memory, bias_memory, workspace;

static void open_all(void)
{
  open_context();
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == 0 && cublasLtCreate(&library) == 0);
  MUST(cuMemAlloc_v2(&a_memory, ROOM) == 0 && cuMemAlloc_v2(&b_memory, ROOM) == 0);
  MUST(cuMemAlloc_v2(&d_memory, ROOM) == 0 && cuMemAlloc_v2(&bias_memory, ROOM) == 0);
  MUST(cuMemAlloc_v2(&workspace, WORKSPACE) == 0);
}

/* ---- a product, as a caller describes it ---- */

typedef struct Call { /* what a case changes before the product, or between its calls */
  int64_t m, n, k, lda, ldb, ldd, stride_a, stride_b, stride_d;
  int batch, transpose_a, transpose_b;
  LtType in, out, bias_type;
  bool tf32, bias;
  float alpha, beta;
  uint32_t align_a, schemes;
  uint64_t workspace; /* limit when the algorithm is chosen */
  size_t given;       /* passed to the call */
  CuPointer a, d;
  bool other; /* calls the algorithm for another product */
} Call;

static Call plain(void)
{
  return (Call){.m = 40,
                .n = 30,
                .k = 20,
                .lda = 40,
                .ldb = 20,
                .ldd = 40,
                .batch = 1,
                .in = CUDA_R_16F,
                .out = CUDA_R_16F,
                .bias_type = CUDA_R_16F,
                .alpha = 1,
                .align_a = 16,
                .schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                .given = WORKSPACE,
                .a = a_memory,
                .d = d_memory};
}

static LtLayout layout(LtType type, int64_t rows, int64_t columns, int64_t ld, int batch,
                       int64_t stride)
{
  LtLayout l;
  int32_t count = batch;
  MUST(cublasLtMatrixLayoutCreate(&l, type, (uint64_t)rows, (uint64_t)columns, ld) == 0);
  MUST(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                        sizeof count) == 0);
  MUST(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                        sizeof stride) == 0);
  return l;
}

static LtMatmul description(const Call *c)
{
  LtMatmul m;
  int32_t ta = c->transpose_a, tb = c->transpose_b, bias_type = c->bias_type;
  uint32_t epilogue = c->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = (const void *)(uintptr_t)bias_memory;
  LtCompute compute = c->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  MUST(cublasLtMatmulDescCreate(&m, compute, CUDA_R_32F) == 0);
  MUST(!cublasLtMatmulDescSetAttribute(m, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta));
  MUST(!cublasLtMatmulDescSetAttribute(m, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb));
  MUST(!cublasLtMatmulDescSetAttribute(m, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                       sizeof epilogue));
  MUST(!cublasLtMatmulDescSetAttribute(m, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  MUST(!cublasLtMatmulDescSetAttribute(m, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type,
                                       sizeof bias_type));
  return m;
}

static LtPreference preference(const Call *c)
{
  LtPreference p;
  uint32_t rest = 4;
  MUST(cublasLtMatmulPreferenceCreate(&p) == 0);
  MUST(!cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &c->workspace, sizeof c->workspace));
  MUST(!cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                             &c->schemes, sizeof c->schemes));
  MUST(!cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                             &c->align_a, sizeof c->align_a));
  for (int i = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES;
       i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; i++)
    MUST(!cublasLtMatmulPreferenceSetAttribute(p, i, &rest, sizeof rest));
  return p;
}

/* Chooses the algorithm and calls it, without waiting. */
static LtStatus call(const Call *c)
{
  LtMatmul m = description(c);
  LtPreference p = preference(c);
  LtLayout a = layout(c->in, c->transpose_a ? c->k : c->m, c->transpose_a ? c->m : c->k, c->lda,
                      c->batch, c->stride_a);
  LtLayout b = layout(c->in, c->transpose_b ? c->n : c->k, c->transpose_b ? c->k : c->n, c->ldb,
                      c->batch, c->stride_b);
  LtLayout d = layout(c->out, c->m, c->n, c->ldd, c->batch, c->stride_d);
  LtHeuristic h;
  int found;
  LtStatus s = cublasLtMatmulAlgoGetHeuristic(library, m, a, b, d, d, p, 1, &h, &found);
  if (s) return s;
  MUST(found == 1 && h.workspace <= c->workspace);
  LtLayout last = c->other ? layout(c->out, c->m, c->n, c->ldd + 8, c->batch, c->stride_d) : d;
  return cublasLtMatmul(library, m, &c->alpha, (void *)(uintptr_t)c->a, a,
                        (void *)(uintptr_t)b_memory, b, &c->beta, (void *)(uintptr_t)c->d, last,
                        (void *)(uintptr_t)c->d, last, &h.algorithm,
                        c->given ? (void *)(uintptr_t)workspace : NULL, c->given, stream);
}

/* ---- numbers ---- */

enum { ELEMENTS = 1 << 15 };

static ampc_dtype dtype_of(LtType t)
{
  return t == CUDA_R_32F ? AMPC_F32 : t == CUDA_R_16F ? AMPC_F16 : AMPC_BF16;
}

/* Puts random numbers of this type on the device and returns them in out. */
static void put_numbers(CuPointer to, LtType type, unsigned seed, float out[ELEMENTS])
{
  static char bytes[ELEMENTS * 4];
  for (int i = 0; i < ELEMENTS; i++) {
    seed = seed * 1664525u + 1013904223u;
    out[i] = (float)(seed >> 8) / (1 << 23) - 1;
  }
  convert_narrow(dtype_of(type), out, bytes, ELEMENTS);
  convert_widen(dtype_of(type), bytes, out, ELEMENTS);
  MUST(cuMemcpyHtoDAsync_v2(to, bytes, ELEMENTS * (type == CUDA_R_32F ? 4 : 2), stream) == 0);
}

static void get_numbers(CuPointer from, LtType type, float out[ELEMENTS])
{
  static char bytes[ELEMENTS * 4];
  size_t size = ELEMENTS * (type == CUDA_R_32F ? 4 : 2);
  MUST(cuMemcpyDtoHAsync_v2(bytes, from, size, stream) == 0 && cuStreamSynchronize(stream) == 0);
  convert_widen(dtype_of(type), bytes, out, ELEMENTS);
}

static float tf32(float x)
{
  convert_tf32(&x, &x, 1);
  return x;
}

static double expected(const Call *c, int64_t batch, int64_t i, int64_t j, const float *a,
                       const float *b, const float *old, const float *bias)
{
  double sum = 0;
  for (int64_t k = 0; k < c->k; k++) {
    float x = a[batch * c->stride_a + (c->transpose_a ? i * c->lda + k : k * c->lda + i)];
    float y = b[batch * c->stride_b + (c->transpose_b ? k * c->ldb + j : j * c->ldb + k)];
    sum += c->tf32 ? (double)tf32(x) * tf32(y) : (double)x * y;
  }
  sum = c->alpha * sum + c->beta * old[batch * c->stride_d + j * c->ldd + i];
  return c->bias ? sum + bias[i] : sum;
}

/* Returns half an ulp of the result, plus half an ulp of f32 for each of k additions. */
static double bound(const Call *c, double want)
{
  double unit = c->out == CUDA_R_32F ? 0x1p-24 : c->out == CUDA_R_16F ? 0x1p-11 : 0x1p-8;
  return unit * fabs(want) + 0x1p-24 * (double)c->k;
}

static int right_numbers(const Call *c)
{
  static float a[ELEMENTS], b[ELEMENTS], old[ELEMENTS], bias[ELEMENTS], got[ELEMENTS];
  put_numbers(c->a, c->in, 1, a);
  put_numbers(b_memory, c->in, 2, b);
  put_numbers(c->d, c->out, 3, old);
  put_numbers(bias_memory, c->bias_type, 4, bias);
  MUST(call(c) == 0);
  get_numbers(c->d, c->out, got);
  for (int64_t l = 0; l < c->batch; l++)
    for (int64_t j = 0; j < c->n; j++)
      for (int64_t i = 0; i < c->m; i++) {
        int64_t at = l * c->stride_d + j * c->ldd + i;
        double want = expected(c, l, i, j, a, b, old, bias);
        CHECK_MSG(fabs(got[at] - want) <= bound(c, want), "[%lld, %lld]: %g, expected %g",
                  (long long)i, (long long)j, got[at], want);
        old[at] = got[at];
      }
  CHECK(memcmp(old, got, sizeof old) == 0); /* no other bytes were written */
  return check_failures;
}

static int plain_numbers(void)
{
  Call c = plain();
  return right_numbers(&c);
}

static int transposed_numbers(void)
{
  Call c = plain();
  c.transpose_a = c.transpose_b = 1;
  c.lda = 24, c.ldb = 37, c.ldd = 41;
  c.in = c.out = c.bias_type = CUDA_R_16BF;
  c.bias = true;
  c.alpha = 0.5f;
  return right_numbers(&c);
}

static int accumulated_numbers(void)
{
  Call c = plain();
  c.m = 37, c.n = 13, c.k = 300;
  c.transpose_b = 1;
  c.ldb = 16;
  c.out = CUDA_R_32F;
  c.beta = 1;
  c.workspace = WORKSPACE; /* the workspace is used */
  return right_numbers(&c);
}

static int batched_numbers(void)
{
  Call c = plain();
  c.in = c.out = c.bias_type = CUDA_R_32F;
  c.tf32 = c.bias = true;
  c.batch = 3;
  c.stride_a = 801, c.stride_b = 0, c.stride_d = 1200;
  return right_numbers(&c);
}

static int interleaved_numbers(void)
{
  Call c = plain();
  c.batch = 2;
  c.lda = 80, c.ldd = 80;
  c.stride_a = 40, c.stride_b = 600, c.stride_d = 40;
  return right_numbers(&c);
}

static int wide_numbers(void)
{
  const double x[4] = {1e-9, 2, 1, 3}, one = 1;
  LtMatmul m;
  LtPreference p;
  uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  LtLayout two = layout(CUDA_R_64F, 2, 2, 2, 1, 0);
  LtHeuristic h;
  int found;
  double *y;
  MUST(cuMemAllocHost_v2((void **)&y, sizeof *y) == 0);
  MUST(cublasLtMatmulDescCreate(&m, CUBLAS_COMPUTE_64F, CUDA_R_64F) == 0);
  MUST(cublasLtMatmulPreferenceCreate(&p) == 0);
  MUST(!cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme,
                                             sizeof scheme));
  MUST(cuMemcpyHtoDAsync_v2(a_memory, x, sizeof x, stream) == 0);
  MUST(cuMemcpyHtoDAsync_v2(b_memory, (double[]){1, 1, 1, 1}, sizeof x, stream) == 0);
  MUST(cuMemcpyHtoDAsync_v2(d_memory, (double[]){1, 1, 1, 1}, sizeof x, stream) == 0);
  MUST(!cublasLtMatmulAlgoGetHeuristic(library, m, two, two, two, two, p, 1, &h, &found));
  void *at[] = {(void *)(uintptr_t)a_memory, (void *)(uintptr_t)b_memory,
                (void *)(uintptr_t)d_memory};
  MUST(!cublasLtMatmul(library, m, &one, at[0], two, at[1], two, &one, at[2], two, at[2], two,
                       &h.algorithm, NULL, 0, stream));
  MUST(cuMemcpyDtoHAsync_v2(y, d_memory, sizeof *y, stream) == 0);
  MUST(cuStreamSynchronize(stream) == 0);
  return *y != 2 + 1e-9;
}

/* ---- misuse ---- */

static int wrong_ld(void)
{
  Call c = plain();
  c.lda = 39;
  return call(&c);
}

static int wrong_ld_of_transposed(void)
{
  Call c = plain();
  c.transpose_a = 1; /* A is [k, m] now: lda must be at least 20 */
  c.lda = 19;
  return call(&c);
}

static int wrong_batch(void)
{
  Call c = plain();
  c.batch = 2;
  c.stride_d = 1000;
  return call(&c);
}

static int mixed_types(void)
{
  Call c = plain();
  c.out = CUDA_R_16BF;
  return call(&c);
}

static int bias_of_other_type(void)
{
  Call c = plain();
  c.bias = true;
  c.bias_type = CUDA_R_32F;
  return call(&c);
}

static int tf32_of_halves(void)
{
  Call c = plain();
  c.tf32 = true;
  return call(&c);
}

static int not_aligned(void)
{
  Call c = plain();
  c.a += 8;
  return call(&c);
}

static int short_workspace(void)
{
  Call c = plain();
  c.k = 300;
  c.ldb = 300;
  c.workspace = WORKSPACE;
  c.given = 100;
  return call(&c);
}

static int no_workspace(void)
{
  Call c = plain();
  c.k = 300;
  c.ldb = 300;
  c.workspace = WORKSPACE;
  c.given = 0;
  return call(&c);
}

static int over_operand(void)
{
  Call c = plain();
  c.d = c.a + 16;
  return call(&c);
}

static int of_other_product(void)
{
  Call c = plain();
  c.other = true;
  return call(&c);
}

static int by_atomics(void)
{
  Call c = plain();
  c.schemes |= 1;
  return call(&c);
}

static int past_the_end(void)
{
  Call c = plain();
  c.lda = 1 << 16;
  MUST(call(&c) == 0);
  return cuStreamSynchronize(stream);
}

static int in_a_capture(void)
{
  Call c = plain();
  CuGraph graph;
  MUST(call(&c) == 0 && cuStreamSynchronize(stream) == 0);
  MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == 0);
  MUST(call(&c) == 0 && cuStreamEndCapture(stream, &graph) == 0);
  return (int)mock_count("products_run") - 1;
}

static int first_in_a_capture(void)
{
  Call c = plain();
  MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == 0);
  return call(&c);
}

static int without_context(void)
{
  LtHandle h;
  MUST(cuCtxSetCurrent(NULL) == 0);
  return cublasLtCreate(&h);
}

static int wrong_size_of_attribute(void)
{
  LtMatmul m;
  int64_t wide = 1;
  MUST(cublasLtMatmulDescCreate(&m, CUBLAS_COMPUTE_32F, CUDA_R_32F) == 0);
  return cublasLtMatmulDescSetAttribute(m, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof wide);
}

enum { NOT_INITIALIZED = 1, INVALID = 7, NOT_SUPPORTED = 15 };

static const Case cases[] = {
    {"plain", plain_numbers, 0, NULL},
    {"transposed, bias, bf16", transposed_numbers, 0, NULL},
    {"added to, f32 from f16", accumulated_numbers, 0, NULL},
    {"batch, tf32, one B for all", batched_numbers, 0, NULL},
    {"results side by side", interleaved_numbers, 0, NULL},
    {"in doubles", wide_numbers, 0, NULL},
    {"leading dimension", wrong_ld, INVALID, "matrix A: its leading dimension"},
    {"leading dimension, transposed", wrong_ld_of_transposed, INVALID, "matrix A: its leading"},
    {"results of a batch overlap", wrong_batch, INVALID, "overlap"},
    {"types", mixed_types, NOT_SUPPORTED, "types f16, f16, bf16"},
    {"bias of another type", bias_of_other_type, NOT_SUPPORTED, "bias f32"},
    {"tf32 of f16", tf32_of_halves, NOT_SUPPORTED, "types"},
    {"alignment", not_aligned, ABORTS, "16 bytes of alignment were promised"},
    {"short workspace", short_workspace, INVALID, "needs a workspace of 9600 bytes, 100 given"},
    {"no workspace", no_workspace, INVALID, "needs a workspace"},
    {"result over an operand", over_operand, ABORTS, "lies over an operand"},
    {"algorithm of another product", of_other_product, ABORTS, "another product"},
    {"sums by atomics", by_atomics, ABORTS, "atomics"},
    {"operand past the end of memory", past_the_end, MOCK_ILLEGAL_ADDRESS, "A of a product"},
    {"a capture does not run it", in_a_capture, 0, NULL},
    {"first used in a capture", first_in_a_capture, ABORTS, "for the first time"},
    {"no context", without_context, NOT_INITIALIZED, NULL},
    {"size of an attribute", wrong_size_of_attribute, INVALID, "has 4 bytes, 8 were given"},
};

int main(void)
{
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&cases[i], open_all);
  return check_done();
}
