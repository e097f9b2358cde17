/* Copies between host and device.
 *
 * Note [staging]
 * The driver copies from and to pinned memory while the host continues. Two halves of such memory
 * take turns. Bytes from the host are copied into the current half and sent to the device. When the
 * half is full, an event marks the end of its copies. The other half is used next, after its own
 * event has occurred. So the host is at most two halves ahead of the device, and waits only then.
 * Writes and batches have separate staging memory.
 *
 * Note [halves of INPUT]
 * Batches go to the device on a stream of their own, into the half of INPUT that the running step
 * does not read. Two events keep the order, and the host waits for neither:
 *   free   on the stream of steps, when they leave a half: calls so far may read it. The next batch
 *          for this half waits for it; the first batch waits until the memory has been zeroed.
 *   there  on the stream of batches, after each copy: all later calls wait for it.
 * Each half has its own recording of a step, because a graph contains addresses. */
#include <stdlib.h>
#include <string.h>
#include "cuda_device.h"
#include "common/bytes.h"

/* In bytes. LEAST_HALF: half of the staging memory for writes; for batches it is INPUT larger. */
enum { LEAST_HALF = 1 << 20, ALIGN = 64 };

struct Staging {
  CuStream stream;
  char *memory; /* pinned: two halves */
  int64_t half; /* bytes of a half */
  int64_t used; /* bytes used in the current half */
  int current;
  bool busy[2]; /* the half's event was recorded, and the host has not waited for it yet */
  CuEvent done[2];
};

struct Inputs {
  Staging *staging;
  CuEvent free[2], there[2]; /* for each half: Note [halves of INPUT] */
  CuEvent written;           /* on the caller's stream, when it has written its samples */
  bool turned;               /* turn_input was called before */
};

struct Looks {
  char *memory; /* pinned: LOOKS buffers, which the slots of look() number */
  int64_t slot; /* bytes of a buffer */
  CuEvent there[LOOKS];
};

/* Allocates pinned host memory, which the GPU can copy while the host continues. */
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

static void destroy_events(CudaDevice *d, const CuEvent *events, int n)
{
  for (int i = 0; i < n; i++)
    if (events[i]) d->api->cuEventDestroy_v2(events[i]);
}

static ampc_status open_staging(CudaDevice *d, CuStream stream, int64_t half, Staging **out)
{
  Staging *s = *out = calloc(1, sizeof *s);
  if (!s) return ampc_fail(AMPC_RUN_FAILED, "out of memory for copies");
  s->stream = stream;
  s->half = half;
  ampc_status status = pinned(d, 2 * s->half, &s->memory);
  return status ? status : create_events(d, s->done, 2);
}

static ampc_status open_inputs(CudaDevice *d)
{
  Inputs *in = d->inputs = calloc(1, sizeof *in);
  if (!in) return ampc_fail(AMPC_RUN_FAILED, "out of memory for copies");
  int64_t half = d->program->space_bytes[AMPC_INPUT] + LEAST_HALF;
  ampc_status status = open_staging(d, d->input, half, &in->staging);
  if (!status) status = create_events(d, in->free, 2);
  if (!status) status = create_events(d, &in->written, 1);
  return status ? status : create_events(d, in->there, 2);
}

static ampc_status open_looks(CudaDevice *d)
{
  Looks *l = d->looks = calloc(1, sizeof *l);
  if (!l) return ampc_fail(AMPC_RUN_FAILED, "out of memory for copies");
  l->slot = (d->program->space_bytes[AMPC_STATE] + ALIGN - 1) / ALIGN * ALIGN;
  ampc_status status = pinned(d, LOOKS * l->slot, &l->memory);
  return status ? status : create_events(d, l->there, LOOKS);
}

ampc_status staging_open(CudaDevice *d)
{
  ampc_status status = open_staging(d, d->stream, LEAST_HALF, &d->staging);
  if (!status) status = open_inputs(d);
  return status ? status : open_looks(d);
}

static void close_staging(CudaDevice *d, Staging *s)
{
  if (!s) return;
  destroy_events(d, s->done, 2);
  if (s->memory) d->api->cuMemFreeHost(s->memory);
  free(s);
}

void staging_close(CudaDevice *d)
{
  Inputs *in = d->inputs;
  Looks *l = d->looks;
  close_staging(d, d->staging);
  if (in) close_staging(d, in->staging);
  if (in) destroy_events(d, in->free, 2);
  if (in) destroy_events(d, in->there, 2);
  if (in) destroy_events(d, &in->written, 1);
  if (l) destroy_events(d, l->there, LOOKS);
  if (l && l->memory) d->api->cuMemFreeHost(l->memory);
  free(in);
  free(l);
}

/* Switches to the other half, after its copies are done. */
static ampc_status next_half(CudaDevice *d, Staging *s)
{
  ampc_status status = CUDA(d, cuEventRecord(s->done[s->current], s->stream));
  if (status) return status;
  s->busy[s->current] = true;
  s->current = 1 - s->current;
  s->used = 0;
  if (!s->busy[s->current]) return AMPC_OK;
  s->busy[s->current] = false;
  return cuda_await(d, s->done[s->current]);
}

/* Copies `bytes` bytes to staging memory and starts their transfer. The caller may overwrite `from`
 * when this returns. More bytes than a half can hold are sent in pieces. */
static ampc_status send(CudaDevice *d, Staging *s, void *to, const void *from, int64_t bytes)
{
  ampc_status status = gpu_enter(d);
  for (int64_t done = 0; done < bytes && !status;) {
    int64_t room = s->half - s->used, left = bytes - done;
    if (room <= 0 || (room < left && left <= s->half)) { /* avoids splitting, if possible */
      status = next_half(d, s);
      continue;
    }
    int64_t n = left < room ? left : room;
    char *at = s->memory + s->current * s->half + s->used;
    memcpy(at, (const char *)from + done, (size_t)n);
    status =
        CUDA(d, cuMemcpyHtoDAsync_v2(cuda_address(to) + (CuPointer)done, at, (size_t)n, s->stream));
    s->used += (n + ALIGN - 1) / ALIGN * ALIGN;
    done += n;
  }
  return status;
}

ampc_status cuda_copy_in(Device *device, void *to, const void *from, int64_t bytes)
{
  CudaDevice *d = cuda_of(device);
  return send(d, d->staging, to, from, bytes);
}

ampc_status cuda_turn_input(Device *device, int *out_half)
{
  CudaDevice *d = cuda_of(device);
  Inputs *in = d->inputs;
  ampc_status status = gpu_enter(d);
  if (!status) status = CUDA(d, cuEventRecord(in->free[d->half], d->stream));
  if (!status && !in->turned) status = CUDA(d, cuEventRecord(in->free[1 - d->half], d->stream));
  in->turned = true;
  *out_half = d->half = 1 - d->half;
  return status ? status : CUDA(d, cuStreamWaitEvent(d->input, in->free[d->half], 0));
}

ampc_status cuda_bring(Device *device, void *to, const void *from, int64_t bytes)
{
  CudaDevice *d = cuda_of(device);
  CuEvent there = d->inputs->there[d->half];
  ampc_status status = send(d, d->inputs->staging, to, from, bytes);
  if (!status) status = CUDA(d, cuEventRecord(there, d->input));
  return status ? status : CUDA(d, cuStreamWaitEvent(d->stream, there, 0));
}

ampc_status cuda_bring_on(Device *device, void *to, const void *from, int64_t bytes, void *stream)
{
  CudaDevice *d = cuda_of(device);
  Inputs *in = d->inputs;
  CuEvent there = in->there[d->half];
  ampc_status status = gpu_enter(d);
  if (!status) status = CUDA(d, cuEventRecord(in->written, stream));
  if (!status) status = CUDA(d, cuStreamWaitEvent(d->input, in->written, 0));
  if (!status)
    status = CUDA(
        d, cuMemcpyDtoDAsync_v2(cuda_address(to), cuda_address(from), (size_t)bytes, d->input));
  if (!status) status = CUDA(d, cuEventRecord(there, d->input));
  if (!status) status = CUDA(d, cuStreamWaitEvent(stream, there, 0));
  return status ? status : CUDA(d, cuStreamWaitEvent(d->stream, there, 0));
}

ampc_status cuda_wait(Device *device)
{
  CudaDevice *d = cuda_of(device);
  device->waits++;
  ampc_status status = gpu_enter(d);
  if (!status) status = cuda_await_stream(d);
  if (!status) { /* all copies are done, so both halves are free */
    d->staging->busy[0] = d->staging->busy[1] = false;
    d->staging->used = 0;
  }
  return status;
}

/* Copies through the staging memory: after cuda_wait, no other copy uses it. */
ampc_status cuda_copy_out(Device *device, void *to, const void *from, int64_t bytes)
{
  CudaDevice *d = cuda_of(device);
  Staging *s = d->staging;
  ampc_status status = cuda_wait(device);
  for (int64_t done = 0; done < bytes && !status;) {
    int64_t n = bytes - done < 2 * s->half ? bytes - done : 2 * s->half;
    status = CUDA(d, cuMemcpyDtoHAsync_v2(s->memory, cuda_address(from) + (CuPointer)done,
                                          (size_t)n, d->stream));
    if (!status) status = cuda_await_stream(d);
    if (!status) memcpy((char *)to + done, s->memory, (size_t)n);
    done += n;
  }
  return status;
}

/* Copies into the slot's pinned memory, in stream order after all calls so far. */
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
    status = cuda_await(d, l->there[slot]);
  } else {
    status = cuda_status(d, r, "cuEventQuery");
  }
  if (status) return status;
  memcpy(to, l->memory + slot * l->slot, (size_t)bytes);
  *out_there = true;
  return AMPC_OK;
}
