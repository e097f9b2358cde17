/* Which weights of attention dropout keeps, for cuDNN: kept.cu, which the driver gets as PTX. It is
 * loaded when it is first called for. */
#include <math.h>
#include "cuda_device.h"

enum { BLOCK = 256, EACH = 8 /* as in kept.cu */ };

/* Draws are multiples of 2^-24, and the program's kernel compares them with p as an f32. */
static uint64_t least_of(double p)
{
  return (uint64_t)ceil((double)(float)p * 0x1p24);
}

ampc_status cuda_kept(CudaDevice *d, const KeptDraws *draws, void *out)
{
  CuFunction function;
  CuPointer to = cuda_address(out), state = cuda_address(draws->state);
  uint64_t stream = draws->stream, one = draws->type == AMPC_F16 ? 0x3c00 : 0x3f80;
  uint64_t least = least_of(draws->p), first = draws->first, n = (uint64_t)draws->n;
  uint64_t queries = draws->queries, keys = draws->keys;
  void *arguments[] = {&to, &state, &stream, &one, &least, &first, &n, &queries, &keys};
  ampc_status status = AMPC_OK;
  if (!d->kept) status = CUDA(d, cuModuleLoadDataEx(&d->kept, cuda_kept_ptx, 0, NULL, NULL));
  if (!status) status = CUDA(d, cuModuleGetFunction(&function, d->kept, "ampc_kept"));
  if (status) return status;
  unsigned grid = (unsigned)((n + BLOCK * EACH - 1) / (BLOCK * EACH));
  return CUDA(d, cuLaunchKernel(function, grid, 1, 1, BLOCK, 1, 1, 0, d->stream, arguments, NULL));
}

void kept_close(CudaDevice *d)
{
  if (d->kept) d->api->cuModuleUnload(d->kept);
}
