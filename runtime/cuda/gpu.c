/* Which GPU a program runs on, and its primary context. */
#include <stdio.h>
#include <string.h>
#include "cuda_device.h"

enum { OLDEST_CAPABILITY = 70 };

/* 90 for compute capability 9.0; 0 on failure. */
static int capability_of(const CudaApi *api, CuDevice gpu)
{
  int major = 0, minor = 0;
  if (api->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu) ||
      api->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu))
    return 0;
  return 10 * major + minor;
}

typedef struct Choice {
  int ordinal, capability;
  CuDevice gpu;
  char seen[160]; /* the GPUs that do not fit: "cuda:0 Tesla T4 (sm_75)" */
} Choice;

/* The first GPU that runs code for `least`; `exact`: of just that capability. */
static bool choose(const CudaApi *api, int least, bool exact, Choice *out)
{
  int n = 0;
  *out = (Choice){.ordinal = -1};
  if (api->cuDeviceGetCount(&n) != CUDA_SUCCESS) n = 0;
  for (int i = 0; i < n; i++) {
    CuDevice gpu;
    if (api->cuDeviceGet(&gpu, i) != CUDA_SUCCESS) continue;
    int have = capability_of(api, gpu);
    if (exact ? have == least : have >= least) {
      out->ordinal = i;
      out->gpu = gpu;
      out->capability = have;
      return true;
    }
    char name[64] = "";
    size_t used = strlen(out->seen);
    api->cuDeviceGetName(name, sizeof name, gpu);
    snprintf(out->seen + used, sizeof out->seen - used, "%scuda:%d %s (sm_%d)", used ? ", " : "", i,
             name, have);
  }
  return false;
}

static ampc_status no_gpu(const char *seen, const char *target)
{
  if (!seen[0])
    return ampc_fail(AMPC_RUN_FAILED, "no CUDA device: the driver lists none; use --device cpu");
  return ampc_fail(AMPC_RUN_FAILED,
                   "no CUDA device runs code for %s: there is %s; compile with that --target, or "
                   "use --device cpu",
                   target, seen);
}

ampc_status gpu_open(CudaDevice *d)
{
  const ampc_program *p = d->program;
  const CudaApi *cuda;
  char why[AMPC_WHY_ROOM];
  if (!cuda_load_driver(&cuda, why))
    return ampc_fail(AMPC_RUN_FAILED, "no CUDA device for %s, which was compiled for %s: %s",
                     p->source, p->target, why);
  d->api = cuda;
  Choice at;
  int wanted = ampc_target_capability(p->target);
  if (!choose(d->api, wanted, p->n_images > 0, &at)) return no_gpu(at.seen, p->target);
  d->gpu = at.gpu;
  d->capability = at.capability;
  char name[96] = "";
  d->api->cuDeviceGetName(name, sizeof name, d->gpu);
  snprintf(d->device.name, sizeof d->device.name, "cuda:%d %s", at.ordinal, name);
  ampc_status status = CUDA(d, cuDevicePrimaryCtxRetain(&d->context, d->gpu));
  if (!status) status = gpu_enter(d);
  if (!status) status = CUDA(d, cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING));
  return status ? status : CUDA(d, cuStreamCreate(&d->input, CU_STREAM_NON_BLOCKING));
}

ampc_status gpu_enter(CudaDevice *d)
{
  return CUDA(d, cuCtxSetCurrent(d->context));
}

void gpu_close(CudaDevice *d)
{
  if (d->input) d->api->cuStreamDestroy_v2(d->input);
  if (d->stream) d->api->cuStreamDestroy_v2(d->stream);
  if (d->context) d->api->cuDevicePrimaryCtxRelease_v2(d->gpu);
}

ampc_status ampc_device_target(const char *device, char out[AMPC_TARGET_ROOM])
{
  bool cpu = strcmp(device, "cpu") == 0, must = strcmp(device, "cuda") == 0;
  const CudaApi *cuda;
  char why[AMPC_WHY_ROOM];
  Choice at;
  if (!cpu && !must && strcmp(device, "auto") != 0)
    return ampc_fail(AMPC_BAD_USAGE, "unknown device `%s`: cpu, cuda or auto", device);
  snprintf(out, AMPC_TARGET_ROOM, "cpu");
  if (cpu) return AMPC_OK;
  if (!cuda_load_driver(&cuda, why))
    return must ? ampc_fail(AMPC_RUN_FAILED, "--device cuda: %s", why) : AMPC_OK;
  if (!choose(cuda, OLDEST_CAPABILITY, false, &at))
    return must ? no_gpu(at.seen, "sm_70 or newer") : AMPC_OK;
  snprintf(out, AMPC_TARGET_ROOM, "sm_%d", at.capability);
  return AMPC_OK;
}
