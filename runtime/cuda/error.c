/* Turns the driver's errors into one message: what happened, on which device, and what to do. */
#include <string.h>
#include "cuda_device.h"
#include "common/bytes.h"

/* Whether an error makes the context unusable: illegal addresses, failed launches, lost GPUs. */
static bool is_sticky(CuResult r)
{
  enum { FIRST = 700, LAST = 719, ECC = 214, CONTAINED = 226 };
  bool timeout_or_resources = r == 701; /* a launch that requests too much does no harm */
  return (r >= FIRST && r <= LAST && !timeout_or_resources) || r == ECC || r == CONTAINED;
}

static const char *name_of(const CudaDevice *d, CuResult r)
{
  const char *name = NULL;
  d->api->cuGetErrorName(r, &name);
  return name ? name : "unknown error";
}

static const char *text_of(const CudaDevice *d, CuResult r)
{
  const char *text = NULL;
  d->api->cuGetErrorString(r, &text);
  return text ? text : "no description";
}

/* Turns the driver's status into ours. `call` is the text of the call; the message has its name. */
ampc_status cuda_status(const CudaDevice *d, CuResult r, const char *call)
{
  if (r == CUDA_SUCCESS) return AMPC_OK;
  int n = (int)strcspn(call, "(");
  if (r == CUDA_ERROR_OUT_OF_MEMORY) return cuda_no_memory(d, r, call, 0);
  if (is_sticky(r))
    return ampc_fail(AMPC_RUN_FAILED,
                     "%s failed: %s (%s, reported by %.*s); this process cannot use it any more, "
                     "but checkpoints on disk are intact: continue from the last one with "
                     "--resume; `compute-sanitizer` names the kernel",
                     d->device.name, text_of(d, r), name_of(d, r), n, call);
  return ampc_fail(AMPC_RUN_FAILED, "%s: %.*s failed: %s (%s)", d->device.name, n, call,
                   text_of(d, r), name_of(d, r));
}

ampc_status cuda_no_memory(const CudaDevice *d, CuResult r, const char *call, int64_t bytes)
{
  if (r != CUDA_ERROR_OUT_OF_MEMORY) return cuda_status(d, r, call);
  size_t unused = 0, total = 0;
  int shared = 0; /* the GPU has no memory of its own */
  char wanted[AMPC_BYTES_ROOM], left[AMPC_BYTES_ROOM], all[AMPC_BYTES_ROOM];
  d->api->cuMemGetInfo_v2(&unused, &total);
  d->api->cuDeviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_INTEGRATED, d->gpu);
  ampc_bytes_text((int64_t)unused, left);
  ampc_bytes_text((int64_t)total, all);
  const char *others = shared
                           ? "`free -h` shows what programs and cached files hold of the memory, "
                             "which this GPU shares with the processor"
                           : "nvidia-smi shows who else uses the GPU";
  if (bytes == 0)
    return ampc_fail(AMPC_RUN_FAILED,
                     "%s: out of memory in %.*s (%s of %s are free); a smaller batch needs less, "
                     "and %s",
                     d->device.name, (int)strcspn(call, "("), call, left, all, others);
  return ampc_fail(AMPC_RUN_FAILED,
                   "%s: cannot allocate %s (%s of %s are free); a smaller batch needs less, and %s",
                   d->device.name, ampc_bytes_text(bytes, wanted), left, all, others);
}
