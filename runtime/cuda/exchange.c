/* What exchanges consist of: DeviceOps.add, round, swap, gather, reduce, aside, join. With ranks,
 * NCCL moves the numbers. A kernel of our own (add.cu) adds them, so that bits do not depend on
 * NCCL's algorithm.
 *
 * Note [aside]
 * Gradients are exchanged on a side stream, while backward continues on the main one. Between
 * aside(true) and aside(false) d->stream is the side stream, so all calls go there. Events order
 * the two streams: `forked` lets the side stream wait for the work so far, `joined` lets the main
 * stream wait for the side stream. While a step is captured in a graph, the same events bring the
 * side stream into the capture and back. NCCL's calls must have the same order on all ranks. So
 * while slices may be pending on the side stream, the main stream makes no call of NCCL:
 * exchange_run joins before every exchange but SLICE. */
#include "cuda_device.h"
#include "runtime/ranks/ranks.h"

/* Launches a kernel of add.cu, whose threads compute `each` numbers. */
static ampc_status run(CudaDevice *d, const char *name, int64_t count, int64_t each,
                       void **arguments)
{
  if (count == 0) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  int64_t blocks = (count + OWN_BLOCK * each - 1) / (OWN_BLOCK * each);
  return status ? status : cuda_run_own(d, OWN_ADD, name, blocks, arguments);
}

ampc_status cuda_add(Device *device, ampc_dtype type, void *to, const void *from, int64_t apart,
                     uint32_t n, int64_t count)
{
  enum { PAIR = 2 * sizeof(float) };
  int64_t pieces = n;
  void *arguments[] = {&to, &from, &apart, &pieces, &count};
  if (type == AMPC_BF16) return run(cuda_of(device), "ampc_add_bf16", count, 1, arguments);
  bool pairs = ((uintptr_t)to | (uintptr_t)from | (uintptr_t)apart) % PAIR == 0;
  return run(cuda_of(device), pairs ? "ampc_add_pairs" : "ampc_add", count, 1 + pairs, arguments);
}

ampc_status cuda_round(Device *device, void *to, const void *from, int64_t count)
{
  void *arguments[] = {&to, &from, &count};
  return run(cuda_of(device), "ampc_round_bf16", count, 1, arguments);
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

/* The gathers of a row are one group, so that NCCL makes one call of them. A group is ended even if
 * a call fails. */
ampc_status cuda_gather(Device *device, void *all, int64_t bytes, bool more)
{
  CudaDevice *d = cuda_of(device);
  Nccl *n = d->nccl;
  ampc_status status = gpu_enter(d);
  if (status) return status;
  NcclResult r = more && !n->group ? n->api->ncclGroupStart() : ncclSuccess;
  n->group = n->group || more;
  const void *own = (const char *)all + device->ranks->rank * bytes;
  if (r == ncclSuccess && bytes)
    r = n->api->ncclAllGather(own, all, (size_t)bytes, ncclInt8, n->comm, d->stream);
  if (!n->group) return nccl_done(d, r, "ncclAllGather");
  if (more && r == ncclSuccess) return AMPC_OK;
  n->group = false;
  NcclResult ended = n->api->ncclGroupEnd();
  return nccl_done(d, r == ncclSuccess ? ended : r, "ncclAllGather");
}

ampc_status cuda_reduce(Device *device, void *at, int64_t count, bool piece)
{
  CudaDevice *d = cuda_of(device);
  const Nccl *n = d->nccl;
  if (count == 0) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  if (status) return status;
  if (!piece)
    return nccl_done(
        d, n->api->ncclAllReduce(at, at, (size_t)count, ncclFloat32, ncclSum, n->comm, d->stream),
        "ncclAllReduce");
  return nccl_done(d,
                   n->api->ncclReduceScatter(at, (float *)at + device->ranks->rank * count,
                                             (size_t)count, ncclFloat32, ncclSum, n->comm,
                                             d->stream),
                   "ncclReduceScatter");
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
