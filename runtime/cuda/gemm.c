/* Matrix products by cuBLASLt: the call. How a product is described to it: product.c. */
#include "product.h"

/* A sum of nothing: zeros, or what lies there already. */
static ampc_status empty_sum(CudaDevice *d, const ampc_gemm *g, void *c)
{
  if (g->accumulate) return AMPC_OK;
  if (g->has_bias || g->ldc != g->n || (g->batch > 1 && g->stride_c != g->m * g->n))
    return product_failed(d, g, CUBLAS_STATUS_NOT_SUPPORTED, "nothing to sum");
  int64_t size = ampc_element_size(d->program, g->c_type);
  return d->device.ops->fill(&d->device, c, 0, g->batch * g->m * g->n * size);
}

/* Nothing can be done yet: a plan depends on the alignment of operands. */
ampc_status cuda_prepare_gemm(Device *device, const ampc_gemm *g)
{
  (void)device, (void)g;
  return AMPC_OK;
}

ampc_status cuda_gemm(Device *device, const ampc_gemm *g, const void *a, const void *b,
                      const void *bias, void *c, void *workspace)
{
  CudaDevice *d = cuda_of(device);
  const CudaApi *api = d->api;
  const ProductPlan *p;
  if (g->m == 0 || g->n == 0 || g->batch == 0) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  if (status) return status;
  if (g->k == 0) return empty_sum(d, g, c);
  status = product_find(d, g, a, b, bias, c, &p);
  if (status) return status;
  const double wide[2] = {1, g->accumulate};
  const float narrow[2] = {1, (float)g->accumulate};
  const void *alpha = d->program->real64 ? (const void *)&wide[0] : &narrow[0];
  const void *beta = d->program->real64 ? (const void *)&wide[1] : &narrow[1];
  LtStatus s = CUBLAS_STATUS_SUCCESS;
  if (g->has_bias) /* products of one kind share a plan */
    s = api->cublasLtMatmulDescSetAttribute(p->matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                            sizeof bias);
  if (!s)
    s = api->cublasLtMatmul(product_library(d), p->matmul, alpha, b, p->b, a, p->a, beta, c, p->c,
                            c, p->c, &p->algorithm, workspace, p->workspace, d->stream);
  return s ? product_failed(d, g, s, "failed") : AMPC_OK;
}
