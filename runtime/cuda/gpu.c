/* Selects the GPU of a program, and opens its primary context. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda_device.h"
#include "common/needs.h"
#include "runtime/ranks/ranks.h"

enum { OLDEST_CAPABILITY = 70 };

/* Returns 90 for compute capability 9.0; 0 on failure. */
static int capability_of(const CudaApi *api, CuDevice gpu)
{
  int major = 0, minor = 0;
  if (api->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu) ||
      api->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu))
    return 0;
  return 10 * major + minor;
}

static Ranks own = {.size = 1, .locals = 1}; /* this process among the ranks */

void cuda_set_rank(const Ranks *r)
{
  own = *r;
}

typedef struct Choice {
  int ordinal, capability, n; /* n: number of GPUs */
  CuDevice gpu;
  bool closed;    /* a GPU that could run the program is not free */
  char seen[600]; /* the GPUs that were not taken: "cuda:0 Tesla T4 (sm_75)" */
} Choice;

/* Returns why the GPU is not free; NULL if it is free. In mode EXCLUSIVE_PROCESS, only an attempt
 * to open the GPU shows whether another process uses it. */
static const char *why_closed(const CudaApi *api, CuDevice gpu)
{
  int mode = 0;
  CuContext context;
  api->cuDeviceGetAttribute(&mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, gpu);
  if (mode == CU_COMPUTEMODE_PROHIBITED) return "compute mode PROHIBITED";
  if (mode != CU_COMPUTEMODE_EXCLUSIVE_PROCESS) return NULL;
  CuResult r = api->cuDevicePrimaryCtxRetain(&context, gpu);
  if (!r) api->cuDevicePrimaryCtxRelease_v2(gpu);
  return r == CUDA_ERROR_DEVICE_UNAVAILABLE
             ? "another process has exclusive use of it, compute mode EXCLUSIVE_PROCESS"
             : NULL;
}

/* Prints a note, once per process for each GPU. */
static void say_skipped(int ordinal, const char *name, const char *why)
{
  static atomic_uint said;
  unsigned bit = 1u << ordinal % 32;
  if (!(atomic_fetch_or(&said, bit) & bit))
    fprintf(stderr, "note: cuda:%d %s is not used: %s\n", ordinal, name, why);
}

/* Records that the GPU `at->ordinal` is not taken. `why`: why it is not free, or NULL. */
static void note_seen(const char *name, const char *why, int wish, Choice *at)
{
  at->closed = at->closed || why;
  if (why && wish == ANY_GPU) say_skipped(at->ordinal, name, why);
  if (wish != at->ordinal && wish != ANY_GPU && wish < at->n) return; /* another one is requested */
  size_t used = strlen(at->seen);
  snprintf(at->seen + used, sizeof at->seen - used, "%scuda:%d %s (sm_%d%s%s)", used ? ", " : "",
           at->ordinal, name, at->capability, why ? ", " : "", why ? why : "");
}

/* Takes the GPU `at->ordinal` if it is requested, can run the program and is free. */
static bool take(const CudaApi *api, int least, bool exact, int wish, Choice *at)
{
  char name[64] = "";
  if (api->cuDeviceGet(&at->gpu, at->ordinal) != CUDA_SUCCESS) return false;
  api->cuDeviceGetName(name, sizeof name, at->gpu);
  int have = at->capability = capability_of(api, at->gpu);
  bool fits = (exact ? have == least : have >= least) && (wish == ANY_GPU || wish == at->ordinal);
  const char *why = fits ? why_closed(api, at->gpu) : NULL;
  if (!fits || why) note_seen(name, why, wish, at);
  return fits && !why;
}

/* Whether each rank of this host must take a GPU of its own, by its number. */
static bool by_rank(const Choice *at)
{
  return own.locals > 1 && at->n > 1;
}

/* Chooses the GPU `wish`, or with ANY_GPU the first free one, or that of the rank. It must run code
 * for capability `least`; with `exact` it must have exactly this capability. */
static bool choose(const CudaApi *api, int least, bool exact, int wish, Choice *out)
{
  *out = (Choice){.ordinal = 0};
  if (api->cuDeviceGetCount(&out->n) != CUDA_SUCCESS) out->n = 0;
  if (by_rank(out) && wish != ANY_GPU) return false;
  if (by_rank(out)) wish = own.local;
  for (; out->ordinal < out->n; out->ordinal++)
    if (take(api, least, exact, wish, out)) return true;
  return false;
}

static ampc_status no_gpu(const Choice *at, int wish, const char *target)
{
  const char *hides = getenv("CUDA_VISIBLE_DEVICES");
  if (!at->n)
    return ampc_fail(AMPC_RUN_FAILED, "no CUDA device: the driver lists none; use --device cpu");
  if (by_rank(at) && wish != ANY_GPU)
    return ampc_fail(AMPC_BAD_USAGE,
                     "--device cuda:%d: %d ranks on this host would take the same GPU; with "
                     "--device cuda each takes its own",
                     wish, own.locals);
  if (by_rank(at) && own.local >= at->n)
    return ampc_fail(AMPC_RUN_FAILED,
                     "no GPU for rank %d: it is number %d of %d ranks on this host, which has %d "
                     "GPUs: %s; start at most %d ranks there%s%s",
                     own.rank, own.local, own.locals, at->n, at->seen, at->n,
                     hides ? "; the list is limited by CUDA_VISIBLE_DEVICES=" : "",
                     hides ? hides : "");
  if (wish >= at->n)
    return ampc_fail(AMPC_RUN_FAILED, "--device cuda:%d: there %s %d GPU%s: %s%s%s", wish,
                     at->n == 1 ? "is" : "are", at->n, at->n == 1 ? "" : "s", at->seen,
                     hides ? "; the list is limited by CUDA_VISIBLE_DEVICES=" : "",
                     hides ? hides : "");
  if (at->closed)
    return ampc_fail(AMPC_RUN_FAILED,
                     "%s free: %s; `nvidia-smi -c DEFAULT` lets all processes use it, `--device "
                     "cuda:K` selects another",
                     wish == ANY_GPU ? "no CUDA device is" : "this CUDA device is not", at->seen);
  return ampc_fail(AMPC_RUN_FAILED,
                   "no CUDA device runs code for %s: there is %s; compile with that --target, or "
                   "use --device cpu",
                   target, at->seen);
}

ampc_status gpu_open(CudaDevice *d, int wish)
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
  if (!choose(d->api, wanted, p->n_images > 0, wish, &at)) return no_gpu(&at, wish, p->target);
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
  NEEDS(device && out);
  DeviceWish wish;
  const CudaApi *cuda;
  char why[AMPC_WHY_ROOM];
  Choice at;
  if (!device_read(device, &wish))
    return ampc_fail(AMPC_BAD_USAGE, "unknown device `%s`: " DEVICE_NAMES, device);
  bool must = wish.kind == DEVICE_CUDA;
  snprintf(out, AMPC_TARGET_ROOM, "cpu");
  if (wish.kind == DEVICE_CPU) return AMPC_OK;
  if (!cuda_load_driver(&cuda, why))
    return must ? ampc_fail(AMPC_RUN_FAILED, "--device %s: %s", device, why) : AMPC_OK;
  if (!choose(cuda, OLDEST_CAPABILITY, false, wish.gpu, &at))
    return must ? no_gpu(&at, wish.gpu, "sm_70 or newer") : AMPC_OK;
  snprintf(out, AMPC_TARGET_ROOM, "sm_%d", at.capability);
  return AMPC_OK;
}
