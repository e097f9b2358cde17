/* A step as one CUDA graph.
 *
 * Note [first step]
 * Libraries load kernels and choose algorithms at first use, which must not happen while calls are
 * recorded. So the first time, a step is tried out. STATE is saved and marked as after a loss that
 * is not finite, so that no weight, moment, buffer or counter changes. The calls run, and STATE is
 * restored. (The update clears gradients even if it is skipped.) Then the same calls are recorded,
 * and the graph is launched, now and in all later steps. All of this is in stream order. The host
 * waits only where it checks a relu (Note [NaN through a product] in gemm.c). Meanwhile no other
 * thread opens or closes a device: Note [one at a time] in shared.c.
 *
 * If a step has several bodies, a trial between them would clear their gradients. So a body is
 * tried out before the first body of the run (cuda_rehearse). One trial is enough for both halves
 * of INPUT, because the choices of libraries do not depend on the half. */
#include <stddef.h>
#include <stdlib.h>
#include "cuda_device.h"
#include "runtime/profile.h"

struct Recording {
  Recording *next;
  uint32_t key;
  int half; /* of INPUT */
  bool profiled;
  CuGraphExec graph; /* NULL before the first step */
  bool rehearsed;
  int64_t sent; /* bytes that a launch sends to other ranks */
  Marks marks;  /* with a profile */
};

/* Returns the recording, which is new if there is none yet; NULL: out of memory. */
static Recording *recording_of(CudaDevice *d, uint32_t key, int half, bool profiled)
{
  Recording *r = d->recordings;
  while (r && (r->key != key || r->half != half || r->profiled != profiled)) r = r->next;
  if (r || !(r = calloc(1, sizeof *r))) return r;
  *r = (Recording){.next = d->recordings, .key = key, .half = half, .profiled = profiled};
  return d->recordings = r;
}

/* Makes d->kept_state large enough for the STATE spaces of all members. */
static ampc_status keep_room(CudaDevice *d)
{
  const Device *own = &d->device;
  int64_t bytes = own->more_states * own->state_apart + d->program->space_bytes[AMPC_STATE];
  if (bytes <= d->kept_bytes) return AMPC_OK;
  if (d->kept_state) own->ops->release(&d->device, d->kept_state);
  d->kept_state = NULL;
  d->kept_bytes = bytes;
  return own->ops->alloc(&d->device, bytes, &d->kept_state);
}

ampc_status recordings_open(CudaDevice *d)
{
  return keep_room(d);
}

void recordings_close(CudaDevice *d)
{
  for (Recording *next, *r = d->recordings; r; r = next) {
    next = r->next;
    if (r->graph) d->api->cuGraphExecDestroy(r->graph);
    marks_free(d, &r->marks);
    free(r);
  }
  if (d->kept_state) d->device.ops->release(&d->device, d->kept_state);
}

/* Sets a field in the STATE of all members: each byte becomes 1. */
static ampc_status mark(CudaDevice *d, void *state, size_t offset, size_t bytes)
{
  ampc_status status = AMPC_OK;
  for (int64_t i = 0; i <= d->device.more_states && !status; i++) {
    CuPointer at = cuda_address((char *)state + i * d->device.state_apart) + offset;
    status = CUDA(d, cuMemsetD8Async(at, 1, bytes, d->stream));
  }
  return status;
}
#define MARK(d, state, field)                                                                      \
  mark(d, state, offsetof(ampc_state, field), sizeof((ampc_state *)0)->field)

/* Runs `body` without an effect on the run. Sets all bytes of ampc_state.bad_loss to 1, because a
 * value other than 0 stops all updates. Also sets ampc_state.closes: the last body of a step clears
 * the gradients, so this body clears them, too. Then restores STATE. */
static ampc_status try_out(CudaDevice *d, void *state, ampc_status (*body)(void *), void *context)
{
  ampc_status status = keep_room(d);
  if (status) return status;
  size_t bytes = (size_t)d->kept_bytes;
  CuPointer kept = cuda_address(d->kept_state), now = cuda_address(state);
  status = CUDA(d, cuMemcpyDtoDAsync_v2(kept, now, bytes, d->stream));
  if (!status) status = MARK(d, state, bad_loss);
  if (!status) status = MARK(d, state, closes);
  if (!status) status = body(context);
  return status ? status : CUDA(d, cuMemcpyDtoDAsync_v2(now, kept, bytes, d->stream));
}

/* Records a step. While the stream captures, calls are added to a graph instead of running.
 * Capturing is ended even if a call fails: until then the stream cannot do other work. */
static ampc_status record(CudaDevice *d, Recording *r, ampc_status (*body)(void *), void *context)
{
  CuGraph graph = NULL;
  ampc_status status =
      CUDA(d, cuStreamBeginCapture_v2(d->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  if (status) return status;
  int64_t sent = d->device.sent;
  d->marks = d->device.profile ? &r->marks : NULL;
  status = body(context);
  d->marks = NULL;
  r->sent = d->device.sent - sent;
  d->device.sent = sent; /* nothing was sent yet */
  CuResult ended = d->api->cuStreamEndCapture(d->stream, &graph);
  if (!status) status = cuda_status(d, ended, "cuStreamEndCapture");
  if (!status) status = CUDA(d, cuGraphInstantiateWithFlags(&r->graph, graph, 0));
  if (graph) d->api->cuGraphDestroy(graph);
  return status ? status : CUDA(d, cuGraphUpload(r->graph, d->stream));
}

ampc_status cuda_rehearse(Device *device, uint32_t key, void *state, ampc_status (*body)(void *),
                          void *context)
{
  CudaDevice *d = cuda_of(device);
  ampc_status status = gpu_enter(d);
  if (status) return status;
  setup_lock();
  status = try_out(d, state, body, context);
  setup_unlock();
  for (int half = 0; half < 2 && !status; half++) {
    Recording *r = recording_of(d, key, half, false);
    if (!r) return ampc_fail(AMPC_RUN_FAILED, "out of memory for graphs");
    r->rehearsed = true;
  }
  return status;
}

ampc_status cuda_step(Device *device, uint32_t key, void *state, ampc_status (*body)(void *),
                      void *context)
{
  CudaDevice *d = cuda_of(device);
  Recording *plain = recording_of(d, key, d->half, false);
  Recording *r = device->profile ? recording_of(d, key, d->half, true) : plain;
  if (!plain || !r) return ampc_fail(AMPC_RUN_FAILED, "out of memory for graphs");
  ampc_status status = gpu_enter(d);
  if (!status && device->profile && device->profile->nvtx)
    return cuda_step_direct(d, body, context);
  if (!status && !r->graph) {
    setup_lock();
    if (!plain->rehearsed && !plain->graph) status = try_out(d, state, body, context);
    if (!status) status = record(d, r, body, context);
    setup_unlock();
  }
  if (!status) status = CUDA(d, cuGraphLaunch(r->graph, d->stream));
  if (!status) device->sent += r->sent;
  return !status && device->profile ? marks_read(d, &r->marks) : status;
}
