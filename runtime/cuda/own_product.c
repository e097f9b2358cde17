/* Computes products that cuBLASLt refuses by our own kernel: product.cu. */
#include <stdatomic.h>
#include <stdio.h>
#include "product.h"

enum { TILE = 64 }; /* as in product.cu */

static void say_once(const ampc_gemm *g)
{
  static atomic_bool said;
  char text[PRODUCT_TEXT];
  if (!atomic_exchange(&said, true))
    fprintf(stderr, "note: %s by our own kernel: cuBLASLt has no algorithm for it that runs\n",
            product_text(g, text));
}

/* Writes the kernel's numbers in the order of its arguments: see product.cu. */
enum { NUMBERS = 14 };
static void set_numbers(const ampc_gemm *g, int64_t out[NUMBERS])
{
  _Static_assert(AMPC_I32 == 3, "product.cu knows f32, f16 and bf16");
  int64_t types = g->a_type | g->b_type << 4 | g->c_type << 8 | g->bias_type << 12;
  const int64_t numbers[NUMBERS] = {
      g->m,
      g->n,
      g->k,
      g->trans_a ? 1 : g->lda,
      g->trans_a ? g->lda : 1,
      g->stride_a,
      g->trans_b ? g->ldb : 1,
      g->trans_b ? 1 : g->ldb,
      g->stride_b,
      g->ldc,
      g->stride_c,
      types,
      g->accumulate,
      g->relu,
  };
  for (int i = 0; i < NUMBERS; i++) out[i] = numbers[i];
}

ampc_status own_product(CudaDevice *d, const ampc_gemm *g, const GemmOperands *at)
{
  CuPointer pointers[] = {cuda_address(at->a), cuda_address(at->b),
                          cuda_address(g->has_bias ? at->bias : NULL), cuda_address(at->c)};
  int64_t numbers[NUMBERS];
  void *arguments[4 + NUMBERS];
  int64_t across = (g->n + TILE - 1) / TILE, down = (g->m + TILE - 1) / TILE;
  if (across > INT32_MAX / down / g->batch)
    return product_failed(d, g, CUBLAS_STATUS_NOT_SUPPORTED, "no algorithm");
  if (g->k) say_once(g);
  set_numbers(g, numbers);
  for (int i = 0; i < 4; i++) arguments[i] = &pointers[i];
  for (int i = 0; i < NUMBERS; i++) arguments[4 + i] = &numbers[i];
  const char *name = d->program->real64 ? "ampc_product_f64" : "ampc_product";
  return cuda_run_own(d, OWN_PRODUCT, name, across * down * g->batch, arguments);
}
