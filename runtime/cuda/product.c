/* Plans of matrix products: descriptors and the algorithm, one plan for each kind of product.
 *
 * Note [row-major]
 * cuBLASLt's matrices are column-major: our row-major [m, n] is an [n, m] to it. So C = A B is
 * requested as C' = B' A', with n and m swapped. Nothing is copied. The epilogue needs one bias
 * value per row of C', which is one per column of C.
 *
 * The heuristic lists algorithms that sum in f32 and in a fixed order. We use the first one that
 * runs. Nothing is timed, so a program uses the same algorithm on every GPU of a kind. */
#include "product.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/plan/types.h"

struct ProductPlans {
  ProductPlan *at;
  uint32_t n, room;
};

/* ---- the library ---- */

ampc_status products_open(CudaDevice *d)
{
  d->products = calloc(1, sizeof *d->products);
  if (!d->products) return ampc_fail(AMPC_RUN_FAILED, "out of memory for products");
  return blas_open(d);
}

static void destroy(const CudaApi *api, ProductPlan *p)
{
  if (p->a) api->cublasLtMatrixLayoutDestroy(p->a);
  if (p->b) api->cublasLtMatrixLayoutDestroy(p->b);
  if (p->c) api->cublasLtMatrixLayoutDestroy(p->c);
  if (p->matmul) api->cublasLtMatmulDescDestroy(p->matmul);
}

void products_close(CudaDevice *d)
{
  ProductPlans *s = d->products;
  if (!s) return;
  for (uint32_t i = 0; i < s->n; i++) destroy(d->api, &s->at[i]);
  blas_close(d);
  free(s->at);
  free(s);
}

char *product_text(const ampc_gemm *g, char out[PRODUCT_TEXT])
{
  char batch[32] = "";
  if (g->batch != 1) snprintf(batch, sizeof batch, "%lld times ", (long long)g->batch);
  snprintf(out, PRODUCT_TEXT, "product of %s%s [%lld, %lld] and %s [%lld, %lld] to %s%s%s", batch,
           ampc_dtype_name(g->a_type), (long long)g->m, (long long)g->k, ampc_dtype_name(g->b_type),
           (long long)g->k, (long long)g->n, ampc_dtype_name(g->c_type),
           g->has_bias ? " with bias" : "", g->relu ? " and relu" : "");
  return out;
}

ampc_status product_failed(const CudaDevice *d, const ampc_gemm *g, LtStatus status,
                           const char *what)
{
  char text[PRODUCT_TEXT];
  return ampc_fail(AMPC_RUN_FAILED, "%s: cuBLASLt: %s, %s: %s", d->device.name, what,
                   product_text(g, text), d->api->cublasLtGetStatusString(status));
}

bool product_is_refused(LtStatus s)
{
  return s == CUBLAS_STATUS_NOT_SUPPORTED || s == CUBLAS_STATUS_ARCH_MISMATCH ||
         s == CUBLAS_STATUS_INVALID_VALUE;
}

/* ---- making a plan ---- */

static bool type_of(const CudaDevice *d, ampc_dtype t, LtType *out)
{
#define LIBRARY_TYPE(KIND, name, SPACE, copy, cpu, lt, ...) [AMPC_##KIND] = lt,
  static const LtType types[] = {AMPC_FLOATS(LIBRARY_TYPE)};
  if (!ampc_is_float(t)) return false;
  *out = t == AMPC_F32 && d->program->real64 ? CUDA_R_64F : types[t];
  return true;
}

static LtStatus set(const CudaApi *api, LtMatmul m, LtMatmulAttribute what, uint32_t value)
{
  return api->cublasLtMatmulDescSetAttribute(m, what, &value, sizeof value);
}

/* Describes the product; A and B are swapped: see Note [row-major]. */
static LtStatus make_matmul(const CudaDevice *d, const ampc_gemm *g, LtMatmul *out)
{
  const CudaApi *api = d->api;
  bool wide = d->program->real64;
  LtCompute compute = wide      ? CUBLAS_COMPUTE_64F
                      : g->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                : CUBLAS_COMPUTE_32F;
  LtStatus s = api->cublasLtMatmulDescCreate(out, compute, wide ? CUDA_R_64F : CUDA_R_32F);
  if (!s) s = set(api, *out, CUBLASLT_MATMUL_DESC_TRANSA, g->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (!s) s = set(api, *out, CUBLASLT_MATMUL_DESC_TRANSB, g->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  uint32_t epilogue = (g->relu ? (uint32_t)CUBLASLT_EPILOGUE_RELU : 0) |
                      (g->has_bias ? (uint32_t)CUBLASLT_EPILOGUE_BIAS : 0);
  if (!s && epilogue) s = set(api, *out, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (s || !g->has_bias) return s;
  LtType bias = 0;
  type_of(d, g->bias_type, &bias);
  return set(api, *out, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, (uint32_t)bias);
}

typedef struct Matrix { /* our matrix, row-major as stored */
  ampc_dtype type;
  bool trans;
  int64_t rows, columns; /* sizes before transposition */
  int64_t ld, stride, batch;
} Matrix;

/* Describes the matrix as its transpose, as the library sees it. */
static LtStatus make_layout(const CudaDevice *d, const Matrix *m, LtLayout *out)
{
  const CudaApi *api = d->api;
  LtType t = 0;
  int32_t batch = (int32_t)m->batch;
  uint64_t rows = (uint64_t)m->rows, columns = (uint64_t)m->columns;
  type_of(d, m->type, &t);
  LtStatus s = api->cublasLtMatrixLayoutCreate(out, t, m->trans ? rows : columns,
                                               m->trans ? columns : rows, m->ld);
  if (s || m->batch == 1) return s;
  s = api->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                            sizeof batch);
  if (s) return s;
  return api->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &m->stride, sizeof m->stride);
}

static LtStatus make_layouts(const CudaDevice *d, ProductPlan *p)
{
  const ampc_gemm *g = &p->desc;
  const Matrix a = {g->a_type, g->trans_a, g->m, g->k, g->lda, g->stride_a, g->batch};
  const Matrix b = {g->b_type, g->trans_b, g->k, g->n, g->ldb, g->stride_b, g->batch};
  const Matrix c = {g->c_type, false, g->m, g->n, g->ldc, g->stride_c, g->batch};
  LtStatus s = make_layout(d, &b, &p->b);
  if (!s) s = make_layout(d, &a, &p->a);
  return s ? s : make_layout(d, &c, &p->c);
}

/* Limits the heuristic to sums in a fixed order, our workspace and the operands' alignments. */
static LtStatus make_preference(const CudaDevice *d, const ProductPlan *p, LtPreference *out)
{
  const CudaApi *api = d->api;
  uint64_t workspace = (uint64_t)p->desc.workspace;
  uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  const struct {
    LtPreferenceAttribute what;
    const uint32_t *value;
  } numbers[] = {{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme},
                 {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &p->key.alignment[1]},
                 {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &p->key.alignment[0]},
                 {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &p->key.alignment[2]},
                 {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &p->key.alignment[2]}};
  LtStatus s = api->cublasLtMatmulPreferenceCreate(out);
  if (!s)
    s = api->cublasLtMatmulPreferenceSetAttribute(*out, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &workspace, sizeof workspace);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !s; i++)
    s = api->cublasLtMatmulPreferenceSetAttribute(*out, numbers[i].what, numbers[i].value,
                                                  sizeof(uint32_t));
  return s;
}

/* Lists the heuristic's algorithms without those that it marks as unusable. */
static ampc_status list_algorithms(const CudaDevice *d, ProductPlan *p)
{
  const CudaApi *api = d->api;
  LtPreference preference = NULL;
  int found = 0;
  LtStatus s = make_preference(d, p, &preference);
  if (!s)
    s = api->cublasLtMatmulAlgoGetHeuristic(blas_handle(d), p->matmul, p->b, p->a, p->c, p->c,
                                            preference, MOST_ALGORITHMS, p->algorithm, &found);
  if (preference) api->cublasLtMatmulPreferenceDestroy(preference);
  if (s && !product_is_refused(s)) return product_failed(d, &p->desc, s, "no algorithm");
  for (int i = 0; i < found && !s; i++)
    if (p->algorithm[i].state == CUBLAS_STATUS_SUCCESS)
      p->algorithm[p->n_algorithms++] = p->algorithm[i];
  return AMPC_OK;
}

/* Makes a plan. The bias's address is set before the heuristic checks its alignment. */
static ampc_status make(CudaDevice *d, ProductPlan *p, const void *bias)
{
  const ampc_gemm *g = &p->desc;
  LtType type;
  bool known = type_of(d, g->a_type, &type) && type_of(d, g->b_type, &type) &&
               type_of(d, g->c_type, &type) && (!g->has_bias || type_of(d, g->bias_type, &type));
  if (!known || g->batch > INT32_MAX)
    return product_failed(d, g, CUBLAS_STATUS_NOT_SUPPORTED, "no such product");
  LtStatus s = make_matmul(d, g, &p->matmul);
  if (!s && g->has_bias)
    s = d->api->cublasLtMatmulDescSetAttribute(p->matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                               sizeof bias);
  if (!s) s = make_layouts(d, p);
  return s ? product_failed(d, g, s, "no description") : list_algorithms(d, p);
}

/* ---- finding it again ---- */

/* Returns the largest power of two that divides the address, up to AMPC_CUDA_ALIGN, which suffices
 * for the fastest algorithms. */
static uint32_t alignment_of(const void *p)
{
  uintptr_t at = (uintptr_t)p;
  uint32_t lowest = (uint32_t)(at & (~at + 1));
  return at % AMPC_CUDA_ALIGN ? lowest : AMPC_CUDA_ALIGN;
}

/* Returns all facts that a plan depends on: the product and the alignment of its operands. */
static ProductKey key_of(const ampc_gemm *g, const GemmOperands *at)
{
  ampc_dtype bias = g->has_bias ? g->bias_type : AMPC_DTYPE_COUNT;
  return (ProductKey){
      {g->m, g->n, g->k, g->batch, g->lda, g->ldb, g->ldc, g->stride_a, g->stride_b, g->stride_c,
       g->trans_a, g->trans_b, g->tf32, g->relu, g->a_type, g->b_type, g->c_type, bias,
       g->workspace},
      {alignment_of(at->a), alignment_of(at->b), alignment_of(at->c), alignment_of(at->bias)}};
}

static ampc_status grow(ProductPlans *s)
{
  if (s->n < s->room) return AMPC_OK;
  uint32_t room = s->room ? 2 * s->room : 16;
  ProductPlan *at = realloc(s->at, room * sizeof *at);
  if (!at) return ampc_fail(AMPC_RUN_FAILED, "out of memory for products");
  s->at = at;
  s->room = room;
  return AMPC_OK;
}

/* Searches a list: a program has only dozens of kinds of products and records each step once. */
ampc_status product_find(CudaDevice *d, const ampc_gemm *g, const GemmOperands *at,
                         ProductPlan **out)
{
  ProductPlans *s = d->products;
  const ProductKey key = key_of(g, at);
  for (uint32_t i = 0; i < s->n; i++)
    if (memcmp(&(*out = &s->at[i])->key, &key, sizeof key) == 0) return AMPC_OK;
  ampc_status status = grow(s);
  if (status) return status;
  ProductPlan *p = &s->at[s->n];
  *p = (ProductPlan){.desc = *g, .key = key};
  status = make(d, p, at->bias);
  if (status) {
    destroy(d->api, p);
  } else {
    s->n++;
  }
  *out = p;
  return status;
}
