/* What exchanges consist of: DeviceOps.add, swap, gather, aside, join. With ranks, NCCL moves the
 * numbers. A kernel of our own (add.cu) adds them, so that bits do not depend on NCCL's algorithm.
 *
 * Note [aside]
 * Gradients are exchanged on a side stream, while backward continues on the main one. Between
 * aside(true) and aside(false) d->stream is the side stream, so all calls go there. Events order
 * the two streams: `forked` lets the side stream wait for the work so far, `joined` lets the main
 * stream wait for the side stream. While a step is recorded, the same events bring the side stream
 * into the recording and back. NCCL's calls must come in one order on all ranks, so the main stream
 * has none between aside and join: exchange_run joins first. */
#include "cuda_device.h"
#include "runtime/ranks/ranks.h"

enum { EACH = 2 /* numbers of a thread, as in add.cu */ };

ampc_status cuda_add(Device *device, void *to, const void *from, int64_t apart, uint32_t n,
                     int64_t count)
{
  CudaDevice *d = cuda_of(device);
  bool wide = (((uintptr_t)to | (uintptr_t)from | (uintptr_t)apart) & 7) == 0;
  int64_t each = wide ? EACH : 1, n_wide = n;
  void *arguments[] = {&to, &from, &apart, &n_wide, &count};
  if (count == 0) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  if (status) return status;
  return cuda_run_own(d, OWN_ADD, wide ? "ampc_add_pairs" : "ampc_add",
                      (count + OWN_BLOCK * each - 1) / (OWN_BLOCK * each), arguments);
}

/* The calls of one group run at the same time. The group is ended even if a call fails. */
ampc_status cuda_swap(Device *device, const void *out, void *in, int64_t bytes)
{
  CudaDevice *d = cuda_of(device);
  const NcclApi *nccl = d->nccl->api;
  int rank = device->ranks->rank, size = device->ranks->size;
  if (bytes == 0) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  if (status) return status;
  NcclResult r = nccl->ncclGroupStart();
  for (int i = 1; i < size && r == ncclSuccess; i++) {
    int to = (rank + i) % size, from = (rank + size - i) % size;
    r = nccl->ncclSend((const char *)out + to * bytes, (size_t)bytes, ncclInt8, to, d->nccl->comm,
                       d->stream);
    if (r == ncclSuccess)
      r = nccl->ncclRecv((char *)in + from * bytes, (size_t)bytes, ncclInt8, from, d->nccl->comm,
                         d->stream);
  }
  NcclResult ended = nccl->ncclGroupEnd();
  status = nccl_done(d, r == ncclSuccess ? ended : r, "ncclGroupEnd");
  if (status) return status;
  return device->ops->copy(device, (char *)in + rank * bytes, (const char *)out + rank * bytes,
                           bytes);
}

ampc_status cuda_gather(Device *device, void *all, int64_t bytes)
{
  CudaDevice *d = cuda_of(device);
  if (bytes == 0) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  if (status) return status;
  const void *own = (const char *)all + device->ranks->rank * bytes;
  return nccl_done(
      d, d->nccl->api->ncclAllGather(own, all, (size_t)bytes, ncclInt8, d->nccl->comm, d->stream),
      "ncclAllGather");
}

/* Exchanges d->stream and the other stream. */
static void change_stream(CudaDevice *d)
{
  CuStream other = d->nccl->side;
  d->nccl->side = d->stream;
  d->stream = other;
}

ampc_status cuda_aside(Device *device, bool begins)
{
  CudaDevice *d = cuda_of(device);
  if (!d->nccl) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  if (!status && begins) status = CUDA(d, cuEventRecord(d->nccl->forked, d->stream));
  if (!status && begins) status = CUDA(d, cuStreamWaitEvent(d->nccl->side, d->nccl->forked, 0));
  if (status) return status;
  change_stream(d);
  d->nccl->pending = true;
  return AMPC_OK;
}

ampc_status cuda_join(Device *device)
{
  CudaDevice *d = cuda_of(device);
  Nccl *n = d->nccl;
  if (!n || !n->pending) return AMPC_OK;
  n->pending = false;
  ampc_status status = gpu_enter(d);
  if (!status) status = CUDA(d, cuEventRecord(n->joined, n->side));
  return status ? status : CUDA(d, cuStreamWaitEvent(d->stream, n->joined, 0));
}
