/* NCCL without GPUs: ranks are processes that share memory (nccl_region.c). Communicators do not
 * block: a call is in progress until the program has asked twice, and only then is it on its
 * stream. A call in a capture becomes a part of the graph.
 *   MOCK_NCCL_VERSION=n    version, 23007          MOCK_NCCL_INIT=n   joining fails with result n
 *   MOCK_NCCL_ERROR_AT=n   the n-th call and all later questions find that another rank is gone */
#include "nccl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NCCL_ENTER(need)                                                                           \
  __attribute__((cleanup(mock_leave))) int entered_ = mock_enter(need);                            \
  if (entered_) return ncclUnhandledCudaError
enum { ncclUnhandledCudaError = 1, ncclSystemError = 2, FIRST_SIZE = sizeof(NcclFirstConfig) };

static _Thread_local struct { /* the group that this thread has begun */
  int depth;
  Call *call; /* a swap, or the last call of a row; NULL: nothing in it yet */
} group;

static long calls;
static NcclComm communicators;

/* A rank that ends tells those that wait for it. */
__attribute__((destructor)) static void end(void)
{
  for (NcclComm c = communicators; c; c = c->next) {
    atomic_store(&c->region->rank[c->rank].left, 1);
    unlink(c->path);
  }
}

/* ---- the start ---- */

NcclResult ncclGetVersion(int *out)
{
  if (!out) return mock_refuse(ncclInvalidArgument, "ncclGetVersion to nowhere");
  *out = (int)mock_setting("MOCK_NCCL_VERSION", 23007);
  return ncclSuccess;
}

NcclResult ncclGetUniqueId(NcclId *out)
{
  if (!out) return mock_refuse(ncclInvalidArgument, "ncclGetUniqueId to nowhere");
  const char *folder = getenv("TMPDIR");
  memset(out, 0, sizeof *out);
  snprintf(out->bytes, sizeof out->bytes, "%s/mock_nccl.XXXXXX", folder ? folder : "/tmp");
  return region_make(out->bytes) ? ncclSuccess : ncclSystemError;
}

/* Runs work while the program does something else, as a GPU would, but only if another rank waits
 * for it: so work is late if that is possible. */
static void *help(void *context)
{
  struct ncclComm *c = context;
  while (!atomic_load(&c->stop)) {
    long next = atomic_load(&c->done) + 1;
    bool wanted = false;
    for (int i = 0; i < c->size; i++)
      wanted = wanted || (i != c->rank && atomic_load(&c->region->rank[i].arrived) >= next);
    if (wanted && atomic_load(&c->queued) >= next) mock_progress();
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
  }
  return NULL;
}

static bool good_config(const NcclConfig *config)
{
  NcclFirstConfig c;
  if (!config) return false;
  memcpy(&c, config, sizeof c);
  return c.size == FIRST_SIZE && c.magic == (unsigned)NCCL_API_MAGIC_NUMBER && c.version == 21400 &&
         c.blocking == 0;
}

NcclResult ncclCommInitRankConfig(NcclComm *out, int size, NcclId id, int rank, NcclConfig *config)
{
  NCCL_ENTER(NEEDS_CONTEXT);
  if (!out || size < 1 || size > MOST_RANKS || rank < 0 || rank >= size || !good_config(config))
    return mock_refuse(ncclInvalidArgument, "ncclCommInitRankConfig");
  int wanted = (int)mock_setting("MOCK_NCCL_INIT", 0);
  if (wanted) unlink(id.bytes);
  if (wanted) return wanted;
  struct ncclComm *c = calloc(1, sizeof *c);
  if (!c) return ncclSystemError;
  c->rank = rank;
  c->size = size;
  memcpy(c->path, id.bytes, sizeof c->path - 1);
  c->region = region_open(c->path, size);
  if (!c->region) return mock_refuse(ncclInvalidArgument, "no rank has made this unique id");
  c->region->rank[rank].device = mock_device();
  if (atomic_exchange(&c->region->rank[rank].joined, 1)) mock_misuse("rank %d joins twice", rank);
  if (pthread_create(&c->helper, NULL, help, c)) return ncclSystemError;
  mock_add(COUNT_held, 1);
  c->next = communicators;
  *out = communicators = c;
  return ncclInProgress;
}

/* Returns the state of joining: in progress until all ranks have joined. */
static NcclResult joined(struct ncclComm *c)
{
  for (int i = 0; i < c->size; i++)
    if (!atomic_load(&c->region->rank[i].joined)) return ncclInProgress;
  for (int i = 0; i < c->size; i++)
    for (int k = 0; k < i; k++)
      if (c->region->rank[i].device == c->region->rank[k].device) {
        snprintf(c->error, sizeof c->error, "Duplicate GPU detected : rank %d and rank %d", k, i);
        return ncclInvalidUsage;
      }
  unlink(c->path);
  return ncclSuccess;
}

/* ---- calls ---- */

static CuResult run(const Op *op)
{
  const Call *call;
  long number;
  memcpy(&call, op->as.library.data, sizeof call);
  memcpy(&number, op->as.library.data + sizeof call, sizeof number);
  return call_try(call, number);
}

static void number(Op *op)
{
  const Call *call;
  memcpy(&call, op->as.library.data, sizeof call);
  long n = atomic_fetch_add(&call->comm->queued, 1) + 1;
  memcpy(op->as.library.data + sizeof call, &n, sizeof n);
}

static void count_graphs(const Op *op, int n)
{
  const Call *call;
  memcpy(&call, op->as.library.data, sizeof call);
  call->comm->in_graphs += n;
}

/* Puts the call, and those before it in its group, on their stream. */
static NcclResult put(const Call *call)
{
  NcclResult before = call->before ? put(call->before) : ncclSuccess;
  if (before != ncclSuccess) return before;
  Op op = {.run = run,
           .queued = number,
           .kept = count_graphs,
           .label = call->kind == CALL_swap ? "sends and receives" : "a call of NCCL",
           .of_step = true};
  memcpy(op.as.library.data, &call, sizeof call);
  mock_add(COUNT_library_calls, 1);
  return mock_queue(call->stream, &op) ? ncclUnhandledCudaError : ncclSuccess;
}

static bool fails(void)
{
  long at = mock_setting("MOCK_NCCL_ERROR_AT", 0);
  return at && calls >= at;
}

NcclResult ncclCommGetAsyncError(NcclComm comm, NcclResult *out)
{
  NCCL_ENTER(NEEDS_DRIVER);
  if (!comm || !out) return mock_refuse(ncclInvalidArgument, "ncclCommGetAsyncError");
  *out = fails() ? ncclRemoteError : joined(comm);
  if (*out != ncclSuccess || !comm->late) return ncclSuccess;
  *out = ncclInProgress;
  if (++comm->asked < 2) return ncclSuccess;
  *out = put(comm->late);
  comm->late = NULL;
  return ncclSuccess;
}

/* Checks a call of the communicator, and returns the memory for its description, which lives as
 * long as the process: graphs may have it. */
static Call *new_call(NcclComm comm, CallKind kind, CuStream stream, NcclType type,
                      const char *name)
{
  if (!comm || (type != ncclInt8 && type != ncclFloat32)) {
    mock_refuse(ncclInvalidArgument, "%s", name);
    return NULL;
  }
  if (comm->late || comm->aborted || joined(comm) != ncclSuccess)
    mock_misuse("rank %d: %s while the last call is in progress", comm->rank, name);
  Call *c = calloc(1, sizeof *c);
  if (!c) mock_misuse("out of memory");
  *c = (Call){.comm = comm, .kind = kind, .stream = stream};
  for (int i = 0; i < MOST_RANKS; i++) c->sends[i].bytes = c->receives[i].bytes = -1;
  return c;
}

static NcclResult begin(Call *c)
{
  calls++;
  if (fails()) return ncclRemoteError;
  c->comm->late = c;
  c->comm->asked = 0;
  return ncclInProgress;
}

/* Makes a call in which all ranks do the same. If its two ranges overlap, the smaller one must
 * begin `place` bytes after the larger one. */
static NcclResult together(Call c, size_t larger, size_t place, NcclType type, const char *name)
{
  NCCL_ENTER(NEEDS_CONTEXT);
  bool gathers = c.kind == CALL_gather;
  uint64_t all = gathers ? c.to : c.from, one = gathers ? c.from : c.to;
  if (!c.from || !c.to) return mock_refuse(ncclInvalidArgument, "%s of nothing", name);
  if (group.depth && (!gathers || (group.call && group.call->kind != CALL_gather)))
    mock_misuse("%s in a group", name);
  if (group.call && (group.call->comm != c.comm || group.call->stream != c.stream))
    mock_misuse("rank %d: a group of several streams", c.comm->rank);
  Call *call = new_call(c.comm, c.kind, c.stream, type, name);
  if (!call) return ncclInvalidArgument;
  if (type != (gathers ? ncclInt8 : ncclFloat32)) mock_misuse("%s of other numbers", name);
  if (one != all + place && one < all + larger && all < one + c.bytes)
    mock_misuse("rank %d: %s in place, but not at its own place", c.comm->rank, name);
  call->from = c.from;
  call->to = c.to;
  call->bytes = c.bytes;
  if (!group.depth) return begin(call);
  call->before = group.call;
  group.call = call;
  return ncclSuccess;
}

NcclResult ncclAllGather(const void *from, void *to, size_t count, NcclType type, NcclComm comm,
                         CuStream stream)
{
  if (!comm) return mock_refuse(ncclInvalidArgument, "ncclAllGather");
  const Call c = {.comm = comm,
                  .kind = CALL_gather,
                  .stream = stream,
                  .from = (uint64_t)from,
                  .to = (uint64_t)to,
                  .bytes = count};
  return together(c, (size_t)comm->size * count, (size_t)comm->rank * count, type, "ncclAllGather");
}

NcclResult ncclAllReduce(const void *from, void *to, size_t count, NcclType type, NcclSum how,
                         NcclComm comm, CuStream stream)
{
  size_t bytes = count * sizeof(float);
  if (!comm || how != ncclSum) return mock_refuse(ncclInvalidArgument, "ncclAllReduce");
  const Call c = {.comm = comm,
                  .kind = CALL_reduce,
                  .stream = stream,
                  .from = (uint64_t)from,
                  .to = (uint64_t)to,
                  .bytes = bytes};
  return together(c, bytes, 0, type, "ncclAllReduce");
}

NcclResult ncclReduceScatter(const void *from, void *to, size_t count, NcclType type, NcclSum how,
                             NcclComm comm, CuStream stream)
{
  size_t bytes = count * sizeof(float);
  if (!comm || how != ncclSum) return mock_refuse(ncclInvalidArgument, "ncclReduceScatter");
  const Call c = {.comm = comm,
                  .kind = CALL_scatter,
                  .stream = stream,
                  .from = (uint64_t)from,
                  .to = (uint64_t)to,
                  .bytes = bytes};
  return together(c, (size_t)comm->size * bytes, (size_t)comm->rank * bytes, type,
                  "ncclReduceScatter");
}

NcclResult ncclGroupStart(void)
{
  group.depth++;
  return ncclSuccess;
}

NcclResult ncclGroupEnd(void)
{
  NCCL_ENTER(NEEDS_DRIVER);
  if (group.depth == 0) return mock_refuse(ncclInvalidUsage, "ncclGroupEnd without a group");
  if (--group.depth || !group.call) return ncclSuccess;
  Call *c = group.call;
  group.call = NULL;
  return begin(c);
}

static NcclResult add(bool sends, const void *at, size_t count, NcclType type, int rank,
                      NcclComm comm, CuStream stream)
{
  const char *name = sends ? "ncclSend" : "ncclRecv";
  NCCL_ENTER(NEEDS_CONTEXT);
  if (!at || !comm || rank < 0 || rank >= comm->size)
    return mock_refuse(ncclInvalidArgument, "%s of rank %d", name, rank);
  if (!group.depth)
    mock_misuse("rank %d: %s outside of a group waits for its peer", comm->rank, name);
  if (!group.call) group.call = new_call(comm, CALL_swap, stream, type, name);
  Call *c = group.call;
  if (!c) return ncclInvalidArgument;
  if (c->kind != CALL_swap || c->comm != comm || c->stream != stream || type != ncclInt8)
    mock_misuse("rank %d: a group of several streams, types or kinds", comm->rank);
  Transfer *t = &(sends ? c->sends : c->receives)[rank];
  if (t->bytes >= 0) mock_misuse("rank %d: %s twice with rank %d", comm->rank, name, rank);
  *t = (Transfer){(uint64_t)at, (long)count};
  return ncclSuccess;
}

NcclResult ncclSend(const void *from, size_t count, NcclType type, int to, NcclComm comm,
                    CuStream stream)
{
  return add(true, from, count, type, to, comm, stream);
}

NcclResult ncclRecv(void *to, size_t count, NcclType type, int from, NcclComm comm, CuStream stream)
{
  return add(false, to, count, type, from, comm, stream);
}

/* ---- the end ---- */

static NcclResult leave(NcclComm comm, const char *name, bool aborts)
{
  if (!comm) return mock_refuse(ncclInvalidArgument, "%s of nothing", name);
  if (comm->in_graphs)
    mock_misuse("rank %d: %s waits for ever: graphs that exist have %d calls of the communicator",
                comm->rank, name, comm->in_graphs);
  atomic_store(&comm->stop, true);
  pthread_join(comm->helper, NULL); /* not in a call: the helper may wait for its turn */
  NCCL_ENTER(NEEDS_NOTHING);
  comm->aborted = aborts;
  mock_drain();
  comm->aborted = true;
  atomic_store(&comm->region->rank[comm->rank].left, 1);
  unlink(comm->path);
  mock_add(COUNT_held, -1);
  return ncclSuccess; /* it is not freed: work that was aborted may still name it */
}

NcclResult ncclCommDestroy(NcclComm comm)
{
  return leave(comm, "ncclCommDestroy", false);
}

NcclResult ncclCommAbort(NcclComm comm)
{
  return leave(comm, "ncclCommAbort", true);
}

/* ---- messages ---- */

const char *ncclGetErrorString(NcclResult result)
{
  static const char *const texts[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return result >= 0 && result <= ncclInProgress ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(NcclComm comm)
{
  return comm ? comm->error : "";
}
