/* Matrix products by cuBLASLt: the call. product.c describes products to the library.
 *
 * Note [NaN through a product]
 * A relu must keep NaN, so that a failed step is noticed. cuBLASLt documents its relu only as
 * max(x, 0), and some instructions compute max(NaN, 0) as 0. So an algorithm for a product with
 * relu is tested before its first use. It is called with NaN as the factor of the product, which
 * makes every result NaN, and one result is checked. An algorithm that loses the NaN is not used.
 * If all lose it, the product runs without relu, and a relu of our own follows (relu.c). The test
 * happens once, when a step is tried out.
 *
 * Note [refused]
 * If the library refuses a product, we request other forms: without relu, with an aligned bias,
 * matrix by matrix. If it refuses all of them, our own kernel computes the product
 * (own_product.c). */
#include <math.h>
#include <string.h>
#include "product.h"
#include "runtime/base/convert.h"

/* Computes a product with k = 0: the result is 0, or the old C if the product is added to it. */
static ampc_status empty_sum(CudaDevice *d, const ampc_gemm *g, void *c, bool *out_refused)
{
  int64_t size = ampc_element_size(d->program, g->c_type);
  bool gaps = g->ldc != g->n || (g->batch > 1 && g->stride_c != g->m * g->n);
  *out_refused = g->has_bias || (gaps && !g->accumulate);
  if (*out_refused || g->accumulate) return AMPC_OK;
  return d->device.ops->fill(&d->device, c, 0, g->batch * g->m * g->n * size);
}

/* Does nothing: a plan depends on the alignment of operands. */
ampc_status cuda_prepare_gemm(Device *device, const ampc_gemm *g)
{
  (void)device, (void)g;
  return AMPC_OK;
}

/* Computes the product by cuBLASLt. *out_refused: cuBLASLt refuses it in all forms. */
static ampc_status by_library(CudaDevice *d, const ampc_gemm *g, GemmOperands at,
                              bool *out_refused);

/* ---- other forms of a product that the library refuses ---- */

enum { LEAST_ALIGNMENT = 16 }; /* bytes, for a bias in the epilogue */

/* Copies an unaligned bias, such as the bias of one group of a convolution, to the beginning of the
 * workspace first. */
static ampc_status with_aligned_bias(CudaDevice *d, const ampc_gemm *g, GemmOperands at,
                                     bool *out_refused)
{
  ampc_gemm rest = *g;
  int64_t bytes = g->n * ampc_element_size(d->program, g->bias_type);
  rest.workspace -= ampc_round_up(bytes, AMPC_CUDA_ALIGN);
  *out_refused = rest.workspace < 0;
  if (*out_refused) return AMPC_OK;
  ampc_status status = d->device.ops->copy(&d->device, at.workspace, at.bias, bytes);
  at.bias = at.workspace;
  at.workspace = (char *)at.workspace + (g->workspace - rest.workspace);
  return status ? status : by_library(d, &rest, at, out_refused);
}

/* Computes the matrices of a batch one by one. The library may refuse some of them because of their
 * addresses; our own kernel computes these. */
static ampc_status one_by_one(CudaDevice *d, const ampc_gemm *g, GemmOperands at, bool *out_refused)
{
  ampc_gemm one = *g;
  ampc_status status = AMPC_OK;
  int64_t a = g->stride_a * ampc_element_size(d->program, g->a_type);
  int64_t b = g->stride_b * ampc_element_size(d->program, g->b_type);
  int64_t c = g->stride_c * ampc_element_size(d->program, g->c_type);
  one.batch = 1;
  one.stride_a = one.stride_b = one.stride_c = 0;
  for (int64_t i = 0; i < g->batch && !status; i++) {
    GemmOperands now = at;
    now.a = (const char *)at.a + i * a;
    now.b = (const char *)at.b + i * b;
    now.c = (char *)at.c + i * c;
    status = by_library(d, &one, now, out_refused);
    if (*out_refused && i == 0) return status;
    if (*out_refused) status = own_product(d, &one, &now);
  }
  *out_refused = false;
  return status;
}

/* Applies a relu that the library cannot compute, or computes wrongly, to a result whose rows all
 * have the same distance, also across the batch. */
static ampc_status relu_afterwards(CudaDevice *d, const ampc_gemm *g, GemmOperands at,
                                   bool *out_refused)
{
  ampc_gemm rest = *g;
  rest.relu = false;
  *out_refused = g->batch > 1 && g->stride_c != g->m * g->ldc;
  if (*out_refused) return AMPC_OK;
  ampc_status status = by_library(d, &rest, at, out_refused);
  if (status || *out_refused) return status;
  return cuda_relu(d, g->c_type, at.c, &(Rows){g->batch * g->m, g->n, g->ldc - g->n});
}

/* ---- the call ---- */

/* Runs a product. `factor`: the product is multiplied by it: 1, or NaN for the test of a relu. */
static LtStatus run(CudaDevice *d, const ampc_gemm *g, const ProductPlan *p, const GemmOperands *at,
                    float factor)
{
  const LtHeuristic *h = &p->algorithm[p->chosen];
  const double wide[2] = {factor, g->accumulate};
  const float narrow[2] = {factor, (float)g->accumulate};
  const void *alpha = d->program->real64 ? (const void *)&wide[0] : &narrow[0];
  const void *beta = d->program->real64 ? (const void *)&wide[1] : &narrow[1];
  return d->api->cublasLtMatmul(blas_handle(d), p->matmul, alpha, at->b, p->b, at->a, p->a, beta,
                                at->c, p->c, at->c, p->c, &h->algorithm, at->workspace,
                                h->workspace, d->stream);
}

/* Waits for the product and checks whether its first result is NaN. */
static ampc_status is_nan(CudaDevice *d, const ampc_gemm *g, const void *c, bool *out)
{
  char bytes[sizeof(double)] = {0};
  float x;
  double wide;
  int64_t size = ampc_element_size(d->program, g->c_type);
  ampc_status status = d->device.ops->copy_out(&d->device, bytes, c, size);
  memcpy(&wide, bytes, sizeof wide);
  convert_widen(g->c_type, bytes, &x, 1);
  *out = size == sizeof wide ? isnan(wide) : isnan(x);
  return status;
}

/* Skips the algorithms whose relu loses NaN: Note [NaN through a product]. */
static ampc_status take_one_that_keeps_nan(CudaDevice *d, const ampc_gemm *g, ProductPlan *p,
                                           const GemmOperands *at)
{
  for (; p->chosen < p->n_algorithms; p->chosen++) {
    LtStatus s = run(d, g, p, at, NAN);
    if (product_is_refused(s)) continue;
    if (s) return product_failed(d, g, s, "failed");
    ampc_status status = is_nan(d, g, at->c, &p->keeps_nan);
    if (status || p->keeps_nan) return status;
  }
  p->n_algorithms = 0;
  return AMPC_OK;
}

/* Runs the first algorithm that works. The heuristic also names algorithms that do not run. A step
 * is tried out before it is recorded (graph.c), so the choice is made when recording begins. */
static ampc_status run_first_that_can(CudaDevice *d, const ampc_gemm *g, ProductPlan *p,
                                      const GemmOperands *at)
{
  LtStatus s = CUBLAS_STATUS_SUCCESS;
  if (g->has_bias) /* products of one kind share a plan */
    s = d->api->cublasLtMatmulDescSetAttribute(p->matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                               &at->bias, sizeof at->bias);
  if (s) return product_failed(d, g, s, "no bias");
  if (g->relu && !p->keeps_nan) {
    ampc_status status = take_one_that_keeps_nan(d, g, p, at);
    if (status || !p->n_algorithms) return status;
  }
  while (product_is_refused(s = run(d, g, p, at, 1)) && p->chosen + 1 < p->n_algorithms)
    p->chosen++;
  if (product_is_refused(s)) p->n_algorithms = 0;
  return !s || product_is_refused(s) ? AMPC_OK : product_failed(d, g, s, "failed");
}

static ampc_status by_library(CudaDevice *d, const ampc_gemm *g, GemmOperands at, bool *out_refused)
{
  ProductPlan *p;
  *out_refused = false;
  if (g->has_bias && (uintptr_t)at.bias % LEAST_ALIGNMENT)
    return with_aligned_bias(d, g, at, out_refused);
  ampc_status status = product_find(d, g, &at, &p);
  if (!status && p->n_algorithms) status = run_first_that_can(d, g, p, &at);
  if (status || p->n_algorithms) return status;
  if (g->relu) return relu_afterwards(d, g, at, out_refused);
  if (g->batch > 1) return one_by_one(d, g, at, out_refused);
  *out_refused = true;
  return AMPC_OK;
}

/* ---- odd sizes ---- */

/* Note [odd sizes]
 * cuBLASLt has fast algorithms only for matrices whose rows consist of whole vectors of 16 bytes. A
 * gap behind each row does not help: on an H200 (cuBLASLt 13.1) a product of 50,257 columns took as
 * long with rows of 50,264 elements as with rows of 50,257, eight times as long as one of 50,304
 * columns. So a product computes more if its operands have room for it:
 *   columns   The gaps of C take what B's rows behind its last give. Nobody reads gaps.
 *   terms     The gaps of A and the rows behind B are set to 0 first, whatever they were.
 *   rows      The rows behind C take what the gaps of A give, and are set to 0 afterwards.
 * The last columns of another large result become a product of their own. */
static int64_t whole_columns(const CudaDevice *d, const ampc_gemm *g)
{
  enum { VECTOR = 16 /* bytes */, LEAST = 512 };
  int64_t size = ampc_element_size(d->program, g->c_type), rest = g->n * size % VECTOR / size;
  return rest && g->n >= LEAST && g->ldc * size % VECTOR == 0 ? g->n - rest : g->n;
}

/* Sets to 0 the gaps of A and the rows behind B, which further terms read. */
static ampc_status clear_terms(CudaDevice *d, const ampc_gemm *g, const GemmOperands *at)
{
  int64_t a = ampc_element_size(d->program, g->a_type);
  int64_t row = ampc_element_size(d->program, g->b_type) * g->ldb;
  CuPointer gaps = cuda_address(at->a) + (CuPointer)(g->k * a);
  CuPointer rows = cuda_address(at->b) + (CuPointer)(g->k * row);
  if (!g->more_k) return AMPC_OK;
  ampc_status status = CUDA(d, cuMemsetD2D8Async(gaps, (size_t)(g->lda * a), 0,
                                                 (size_t)(g->more_k * a), (size_t)g->m, d->stream));
  if (status) return status;
  return CUDA(d, cuMemsetD8Async(rows, 0, (size_t)(g->more_k * row), d->stream));
}

/* Sets to 0 the rows behind C. */
static ampc_status clear_rows(CudaDevice *d, const ampc_gemm *g, const GemmOperands *at)
{
  int64_t row = ampc_element_size(d->program, g->c_type) * g->ldc;
  CuPointer rows = cuda_address(at->c) + (CuPointer)(g->m * row);
  if (!g->more_m) return AMPC_OK;
  return CUDA(d, cuMemsetD8Async(rows, 0, (size_t)(g->more_m * row), d->stream));
}

static ampc_status multiply(CudaDevice *d, const ampc_gemm *g, const GemmOperands *at)
{
  bool refused;
  ampc_status status = g->k ? by_library(d, g, *at, &refused) : empty_sum(d, g, at->c, &refused);
  return status || !refused ? status : own_product(d, g, at);
}

/* Computes the columns from `first` on. */
static ampc_status multiply_rest(CudaDevice *d, const ampc_gemm *g, GemmOperands at, int64_t first)
{
  ampc_gemm rest = *g;
  int64_t b = ampc_element_size(d->program, g->b_type) * (g->trans_b ? g->ldb : 1);
  rest.n -= first;
  at.b = (const char *)at.b + first * b;
  at.c = (char *)at.c + first * ampc_element_size(d->program, g->c_type);
  if (g->has_bias)
    at.bias = (const char *)at.bias + first * ampc_element_size(d->program, g->bias_type);
  return multiply(d, &rest, &at);
}

ampc_status cuda_gemm(Device *device, const ampc_gemm *g, const GemmOperands *at)
{
  CudaDevice *d = cuda_of(device);
  if (g->m == 0 || g->n == 0 || g->batch == 0) return AMPC_OK;
  ampc_gemm all = *g;
  all.m += g->more_m;
  all.n += g->more_n;
  all.k += g->more_k;
  ampc_gemm whole = all;
  whole.n = whole_columns(d, &all);
  ampc_status status = gpu_enter(d);
  if (!status) status = clear_terms(d, g, at);
  if (!status) status = multiply(d, &whole, at);
  if (!status && whole.n < all.n) status = multiply_rest(d, &all, *at, whole.n);
  return status ? status : clear_rows(d, g, at);
}
