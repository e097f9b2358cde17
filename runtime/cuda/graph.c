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
  CuGraphExec graph; /* NULL before the first step */
  bool rehearsed;
  Marks marks; /* with a profile */
};

/* Returns the number of recordings of one kind: one for each variant of each block and each half of
 * INPUT. */
static uint32_t n_of_kind(const CudaDevice *d)
{
  return 2 * AMPC_MAX_VARIANTS * d->program->n_blocks;
}

/* Returns the number of recordings without events. With members, bodies whose exchanges wait for a
 * later body are a kind of their own. */
static uint32_t n_recordings(const CudaDevice *d)
{
  return d->program->members ? 2 * n_of_kind(d) : n_of_kind(d);
}

ampc_status recordings_open(CudaDevice *d)
{
  d->recordings = calloc(2 * n_recordings(d) + 1, sizeof *d->recordings);
  if (!d->recordings) return ampc_fail(AMPC_RUN_FAILED, "out of memory for graphs");
  return d->device.ops->alloc(&d->device, recordings_bytes(d->program, d->members), &d->kept_state);
}

int64_t recordings_bytes(const ampc_program *p, int64_t members)
{
  return p->space_bytes[AMPC_STATE] + (members - 1) * device_step(p, AMPC_STATE);
}

void recordings_close(CudaDevice *d)
{
  for (uint32_t i = 0; d->recordings && i < 2 * n_recordings(d); i++) {
    if (d->recordings[i].graph) d->api->cuGraphExecDestroy(d->recordings[i].graph);
    marks_free(d, &d->recordings[i].marks);
  }
  free(d->recordings);
  if (d->kept_state) d->device.ops->release(&d->device, d->kept_state);
}

/* Marks a member's STATE so that no update is applied: sets all bytes of ampc_state.bad_loss to 1,
 * because a value other than 0 stops all updates. Also sets ampc_state.closes: the last body of a
 * step clears the gradients, so this body clears them, too. */
static ampc_status mark_state(CudaDevice *d, CuPointer state)
{
  CuPointer mark = state + offsetof(ampc_state, bad_loss);
  ampc_status status =
      CUDA(d, cuMemsetD8Async(mark, 1, sizeof((ampc_state *)0)->bad_loss, d->stream));
  if (status) return status;
  mark = state + offsetof(ampc_state, closes);
  return CUDA(d, cuMemsetD8Async(mark, 1, sizeof((ampc_state *)0)->closes, d->stream));
}

/* Runs `body` without an effect on the run: keeps the STATE of all members, marks it, and restores
 * it. */
static ampc_status try_out(CudaDevice *d, void *state, ampc_status (*body)(void *), void *context)
{
  size_t bytes = (size_t)recordings_bytes(d->program, d->members);
  CuPointer kept = cuda_address(d->kept_state), now = cuda_address(state);
  ampc_status status = CUDA(d, cuMemcpyDtoDAsync_v2(kept, now, bytes, d->stream));
  for (int64_t i = 0; i < d->members && !status; i++)
    status = mark_state(d, now + (CuPointer)(i * device_step(d->program, AMPC_STATE)));
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
  d->marks = d->device.profile ? &r->marks : NULL;
  status = body(context);
  d->marks = NULL;
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
  for (uint32_t at = 2 * key; at < n_recordings(d); at += n_of_kind(d))
    d->recordings[at].rehearsed = d->recordings[at + 1].rehearsed = true;
  return status;
}

ampc_status cuda_step(Device *device, uint32_t key, void *state, ampc_status (*body)(void *),
                      void *context)
{
  CudaDevice *d = cuda_of(device);
  Recording *plain = &d->recordings[2 * key + (uint32_t)d->half];
  Recording *r = device->profile ? plain + n_recordings(d) : plain;
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
  return !status && device->profile ? marks_read(d, &r->marks) : status;
}
