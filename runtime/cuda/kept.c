/* Dropout and masks of scores as tensors for cuDNN: kept.cu. */
#include <math.h>
#include "cuda_device.h"
#include "runtime/base/convert.h"

enum { EACH = 8 /* as in kept.cu */, ARGUMENTS = 18, BIAS_ARGUMENTS = 10 };

/* Returns the smallest 24-bit random number with which a weight is kept. As in the program's
 * kernel, p is rounded to f32 first. */
static uint64_t least_of(double p)
{
  return (uint64_t)ceil((double)(float)p * 0x1p24);
}

static ampc_status run(CudaDevice *d, const char *name, int64_t n, void **arguments)
{
  return cuda_run_own(d, OWN_KEPT, name, (n + OWN_BLOCK * EACH - 1) / (OWN_BLOCK * EACH),
                      arguments);
}

/* Sets the arguments that both kernels have, in their order: output, sizes, mask, its strides. */
static void set_walk(const KeptWalk *w, void *out, uint64_t to[ARGUMENTS])
{
  to[0] = (uint64_t)(uintptr_t)out;
  to[1] = (uint64_t)(w->dim[0] * w->dim[1] * w->dim[2] * w->dim[3]);
  for (int i = 1; i < 4; i++) to[1 + i] = (uint64_t)w->dim[i];
  to[5] = (uint64_t)(uintptr_t)w->mask;
  for (int i = 0; i < 4; i++) to[6 + i] = (uint64_t)w->stride[i];
}

ampc_status cuda_kept(CudaDevice *d, const KeptWalk *walk, const KeptDraws *draws, void *out)
{
  uint64_t values[ARGUMENTS];
  void *arguments[ARGUMENTS];
  set_walk(walk, out, values);
  float one = draws->type == AMPC_F32 ? (float)(1 / (1 - draws->p)) : 1;
  values[10] = 0;
  convert_narrow(draws->type, &one, &values[10], 1);
  values[11] = draws->causal;
  values[12] = (uint64_t)(uintptr_t)draws->state;
  values[13] = draws->stream;
  values[14] = least_of(draws->p);
  values[15] = draws->first;
  values[16] = draws->each;
  values[17] = draws->type == AMPC_F32;
  for (int i = 0; i < ARGUMENTS; i++) arguments[i] = &values[i];
  return run(d, "ampc_kept", (int64_t)values[1], arguments);
}

ampc_status cuda_bias(CudaDevice *d, const KeptWalk *walk, void *out)
{
  uint64_t values[ARGUMENTS];
  void *arguments[BIAS_ARGUMENTS];
  set_walk(walk, out, values);
  for (int i = 0; i < BIAS_ARGUMENTS; i++) arguments[i] = &values[i];
  return run(d, "ampc_bias", (int64_t)values[1], arguments);
}
