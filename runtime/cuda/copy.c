/* Bytes between host and device.
 *
 * Note [staging]
 * The driver copies from and to pinned memory while the host goes on. Two halves of such memory
 * take turns: what comes in is copied into the current half and sent; when it is full, an event
 * marks the end of its copies and the other half is next, once its own event has come. So the host
 * is never more than two halves ahead of the device, and it waits only then. */
#include <stdlib.h>
#include <string.h>
#include "cuda_device.h"
#include "runtime/plan/bytes.h"

/* Bytes. A half holds a whole batch of input and some writes beside it. */
enum { LEAST_HALF = 1 << 20, ALIGN = 64 };

struct Staging {
  char *memory; /* pinned: two halves */
  int64_t half; /* bytes */
  int64_t used; /* of the current half */
  int current;
  bool busy[2]; /* its event has been recorded and not been waited for */
  CuEvent done[2];
};

struct Looks {
  char *memory; /* pinned: LOOKS slots */
  int64_t slot; /* bytes */
  CuEvent there[LOOKS];
};

/* Memory of the host that the driver copies from and to by itself. */
static ampc_status pinned(CudaDevice *d, int64_t bytes, char **out)
{
  void *memory = NULL;
  CuResult r = d->api->cuMemAllocHost_v2(&memory, (size_t)bytes);
  *out = memory;
  if (r != CUDA_ERROR_OUT_OF_MEMORY) return cuda_status(d, r, "cuMemAllocHost");
  char text[AMPC_BYTES_ROOM];
  return ampc_fail(AMPC_RUN_FAILED,
                   "%s: cannot pin %s of the host's memory; `ulimit -l` may forbid it",
                   d->device.name, ampc_bytes_text(bytes, text));
}

static ampc_status create_events(CudaDevice *d, CuEvent *events, int n)
{
  ampc_status status = AMPC_OK;
  for (int i = 0; i < n && !status; i++)
    status = CUDA(d, cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
  return status;
}

ampc_status staging_open(CudaDevice *d)
{
  const int64_t *bytes = d->program->space_bytes;
  d->staging = calloc(1, sizeof *d->staging);
  d->looks = calloc(1, sizeof *d->looks);
  if (!d->staging || !d->looks) return ampc_fail(AMPC_RUN_FAILED, "out of memory for copies");
  Staging *s = d->staging;
  Looks *l = d->looks;
  s->half = bytes[AMPC_INPUT] + LEAST_HALF;
  l->slot = (bytes[AMPC_STATE] + ALIGN - 1) / ALIGN * ALIGN;
  ampc_status status = pinned(d, 2 * s->half, &s->memory);
  if (!status) status = pinned(d, LOOKS * l->slot, &l->memory);
  if (!status) status = create_events(d, s->done, 2);
  return status ? status : create_events(d, l->there, LOOKS);
}

void staging_close(CudaDevice *d)
{
  Staging *s = d->staging;
  Looks *l = d->looks;
  for (int i = 0; s && i < 2; i++)
    if (s->done[i]) d->api->cuEventDestroy_v2(s->done[i]);
  for (int i = 0; l && i < LOOKS; i++)
    if (l->there[i]) d->api->cuEventDestroy_v2(l->there[i]);
  if (s && s->memory) d->api->cuMemFreeHost(s->memory);
  if (l && l->memory) d->api->cuMemFreeHost(l->memory);
  free(s);
  free(l);
}

/* Makes room in the current half, or goes on to the other one. */
static ampc_status next_half(CudaDevice *d)
{
  Staging *s = d->staging;
  ampc_status status = CUDA(d, cuEventRecord(s->done[s->current], d->stream));
  if (status) return status;
  s->busy[s->current] = true;
  s->current = 1 - s->current;
  s->used = 0;
  if (!s->busy[s->current]) return AMPC_OK;
  s->busy[s->current] = false;
  return CUDA(d, cuEventSynchronize(s->done[s->current]));
}

/* `from` may change when this returns: its bytes lie in the staging memory then. What does not fit
 * into a whole half goes in pieces. */
ampc_status cuda_copy_in(Device *device, void *to, const void *from, int64_t bytes)
{
  CudaDevice *d = cuda_of(device);
  Staging *s = d->staging;
  ampc_status status = gpu_enter(d);
  for (int64_t done = 0; done < bytes && !status;) {
    int64_t room = s->half - s->used, left = bytes - done;
    if (room <= 0 || (room < left && left <= s->half)) { /* whole, where it can be */
      status = next_half(d);
      continue;
    }
    int64_t n = left < room ? left : room;
    char *at = s->memory + s->current * s->half + s->used;
    memcpy(at, (const char *)from + done, (size_t)n);
    status =
        CUDA(d, cuMemcpyHtoDAsync_v2(cuda_address(to) + (CuPointer)done, at, (size_t)n, d->stream));
    s->used += (n + ALIGN - 1) / ALIGN * ALIGN;
    done += n;
  }
  return status;
}

ampc_status cuda_wait(Device *device)
{
  CudaDevice *d = cuda_of(device);
  device->waits++;
  ampc_status status = gpu_enter(d);
  if (!status) status = CUDA(d, cuStreamSynchronize(d->stream));
  if (!status) { /* no copy is under way: both halves are free */
    d->staging->busy[0] = d->staging->busy[1] = false;
    d->staging->used = 0;
  }
  return status;
}

/* Through pinned memory, which is free after a wait. */
ampc_status cuda_copy_out(Device *device, void *to, const void *from, int64_t bytes)
{
  CudaDevice *d = cuda_of(device);
  Staging *s = d->staging;
  ampc_status status = cuda_wait(device);
  for (int64_t done = 0; done < bytes && !status;) {
    int64_t n = bytes - done < 2 * s->half ? bytes - done : 2 * s->half;
    status = CUDA(d, cuMemcpyDtoHAsync_v2(s->memory, cuda_address(from) + (CuPointer)done,
                                          (size_t)n, d->stream));
    if (!status) status = CUDA(d, cuStreamSynchronize(d->stream));
    if (!status) memcpy((char *)to + done, s->memory, (size_t)n);
    done += n;
  }
  return status;
}

/* In stream order after all calls so far, into the slot's own pinned memory. */
ampc_status cuda_look(Device *device, uint32_t slot, const void *from, int64_t bytes)
{
  CudaDevice *d = cuda_of(device);
  Looks *l = d->looks;
  if (slot >= LOOKS || bytes > l->slot)
    return ampc_fail(AMPC_RUN_FAILED, "a look at %lld bytes in slot %u", (long long)bytes, slot);
  ampc_status status = gpu_enter(d);
  if (!status)
    status = CUDA(d, cuMemcpyDtoHAsync_v2(l->memory + slot * l->slot, cuda_address(from),
                                          (size_t)bytes, d->stream));
  return status ? status : CUDA(d, cuEventRecord(l->there[slot], d->stream));
}

ampc_status cuda_looked(Device *device, uint32_t slot, bool wait, void *to, int64_t bytes,
                        bool *out_there)
{
  CudaDevice *d = cuda_of(device);
  const Looks *l = d->looks;
  *out_there = false;
  ampc_status status = gpu_enter(d);
  if (status) return status;
  CuResult r = d->api->cuEventQuery(l->there[slot]);
  if (r == CUDA_ERROR_NOT_READY && !wait) return AMPC_OK;
  if (r == CUDA_ERROR_NOT_READY) {
    device->waits++;
    r = d->api->cuEventSynchronize(l->there[slot]);
  }
  if (r != CUDA_SUCCESS) return cuda_status(d, r, "cuEventSynchronize");
  memcpy(to, l->memory + slot * l->slot, (size_t)bytes);
  *out_there = true;
  return AMPC_OK;
}
