/* The GPU as one of several ranks: joins the others through NCCL, waits for work that may wait for
 * other ranks, and leaves. exchange.c has the exchanges.
 *
 * Note [waits with ranks]
 * A GPU that waits for a rank that has died waits for ever, and so would a host that blocks until
 * its GPU is done. So with ranks the host polls: the event or the call for which it waits, NCCL's
 * errors, and ranks_wait_on, which has the deadline. The communicator does not block either: a call
 * may return "in progress", and then the next call must wait until it is not (nccl_done). This is
 * also how joining has a deadline. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cuda_device.h"
#include "common/clock.h"
#include "runtime/ranks/ranks.h"

/* Sleeps for a 16th of the time waited so far, at most a millisecond: short waits stay short. */
static void nap(double waited)
{
  double seconds = waited / 16 < 1e-3 ? waited / 16 : 1e-3;
  nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

/* Returns the error. The last error of NCCL says more than its result. */
static ampc_status failed(CudaDevice *d, NcclResult r, const char *call)
{
  Nccl *n = d->nccl;
  n->failed = true;
  const char *more = n->api->ncclGetLastError(n->comm);
  return ampc_fail(AMPC_RUN_FAILED, "%s: %.*s failed: %s%s%s; NCCL_DEBUG=WARN tells more",
                   d->device.name, (int)strcspn(call, "("), call, n->api->ncclGetErrorString(r),
                   more && *more ? ": " : "", more ? more : "");
}

/* Looks for errors of the other ranks while this one waits, since `begin`. */
static ampc_status look_round(CudaDevice *d, double begin)
{
  NcclResult state = ncclSuccess;
  NcclResult r = d->nccl->api->ncclCommGetAsyncError(d->nccl->comm, &state);
  if (r == ncclSuccess) r = state;
  if (r != ncclSuccess && r != ncclInProgress) return failed(d, r, "an exchange");
  double waited = seconds_now() - begin;
  ampc_status status = ranks_wait_on(d->device.ranks, waited);
  if (status) d->nccl->failed = true;
  nap(waited);
  return status;
}

ampc_status nccl_done(CudaDevice *d, NcclResult r, const char *call)
{
  Nccl *n = d->nccl;
  double begin = r == ncclInProgress ? seconds_now() : 0;
  while (r == ncclInProgress) {
    NcclResult asked = n->api->ncclCommGetAsyncError(n->comm, &r);
    if (asked != ncclSuccess) r = asked;
    ampc_status status = r == ncclInProgress ? look_round(d, begin) : AMPC_OK;
    if (status) return status;
  }
  return r == ncclSuccess ? AMPC_OK : failed(d, r, call);
}

ampc_status cuda_await(CudaDevice *d, CuEvent event)
{
  if (!d->nccl) return CUDA(d, cuEventSynchronize(event));
  ampc_status status = AMPC_OK;
  CuResult r;
  for (double begin = seconds_now();
       (r = d->api->cuEventQuery(event)) == CUDA_ERROR_NOT_READY && !status;)
    status = look_round(d, begin);
  return status ? status : cuda_status(d, r, "cuEventQuery");
}

ampc_status cuda_await_stream(CudaDevice *d)
{
  if (!d->nccl) return CUDA(d, cuStreamSynchronize(d->stream));
  ampc_status status = CUDA(d, cuEventRecord(d->nccl->awaited, d->stream));
  return status ? status : cuda_await(d, d->nccl->awaited);
}

/* Joins the other ranks. Rank 0 makes the number by which they find each other. */
static ampc_status join(CudaDevice *d, Ranks *ranks)
{
  typedef struct Row {
    NcclId id;
    NcclResult result;
  } Row;
  Nccl *n = d->nccl;
  Row *rows = calloc((size_t)ranks->size, sizeof *rows);
  if (!rows) return ampc_fail(AMPC_RUN_FAILED, "out of memory joining the other ranks");
  if (ranks->rank == 0) rows->result = n->api->ncclGetUniqueId(&rows->id);
  ampc_status status = ranks_gather(ranks, rows, sizeof *rows);
  const Row first = *rows;
  free(rows);
  if (status) return status;
  if (first.result != ncclSuccess) return failed(d, first.result, "ncclGetUniqueId of rank 0");
  NcclFirstConfig config = {.size = sizeof config,
                            .magic = (unsigned)NCCL_API_MAGIC_NUMBER,
                            .version = NCCL_CONFIG_VERSION,
                            .padding = INT_MIN};
  NcclResult r = n->api->ncclCommInitRankConfig(&n->comm, ranks->size, first.id, ranks->rank,
                                                (NcclConfig *)&config);
  return nccl_done(d, r, "ncclCommInitRankConfig");
}

static ampc_status open_streams(CudaDevice *d)
{
  Nccl *n = d->nccl;
  CuEvent *const events[] = {&n->forked, &n->joined, &n->awaited};
  ampc_status status = CUDA(d, cuStreamCreate(&n->side, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 3 && !status; i++)
    status = CUDA(d, cuEventCreate(events[i], CU_EVENT_DISABLE_TIMING));
  return status;
}

ampc_status cuda_use_ranks(Device *device, Ranks *ranks)
{
  CudaDevice *d = cuda_of(device);
  char why[AMPC_WHY_ROOM];
  const NcclApi *api;
  if (ranks->size == 1) return AMPC_OK;
  if (!cuda_load_nccl(&api, why)) return ampc_fail(AMPC_RUN_FAILED, "%s: %s", device->name, why);
  Nccl *n = calloc(1, sizeof *n);
  if (!n) return ampc_fail(AMPC_RUN_FAILED, "out of memory joining the other ranks");
  n->api = api;
  d->nccl = n;
  device->ranks = ranks;
  setup_lock();
  ampc_status status = gpu_enter(d);
  if (!status) status = open_streams(d);
  if (!status) status = join(d, ranks);
  setup_unlock();
  return status;
}

/* Call it after all graphs are destroyed: NCCL waits until none has a call of the communicator.
 * After a failure other ranks may be gone, so that only an abort returns. */
void nccl_close(CudaDevice *d)
{
  Nccl *n = d->nccl;
  if (!n) return;
  if (n->comm && n->failed) n->api->ncclCommAbort(n->comm);
  if (n->comm && !n->failed) n->api->ncclCommDestroy(n->comm);
  CuEvent const events[] = {n->forked, n->joined, n->awaited};
  for (int i = 0; i < 3; i++)
    if (events[i]) d->api->cuEventDestroy_v2(events[i]);
  if (n->side) d->api->cuStreamDestroy_v2(n->side);
  free(n);
  d->nccl = NULL;
}
