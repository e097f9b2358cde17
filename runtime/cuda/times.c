/* Times of commands on a GPU.
 *
 * Note [GPU times]
 * With a profile, a step is a second graph: it records an event before each command and one at its
 * end. So commands run in a graph as usual, and the host's calls do not show in the times. An event
 * costs about a microsecond, which counts for the command before it. The host waits for each such
 * step, because the next one records the same events again. CUDA reports only differences between
 * events. So the last event gets the time when the host's wait returns, and the others are computed
 * back from it.
 *
 * Nsight Systems assigns the work of a GPU to the NVTX range in which the host launched it, and a
 * graph is one launch. So if such a tool is attached, the commands are launched one by one. */
#include <stdlib.h>
#include "cuda_device.h"
#include "common/clock.h"
#include "runtime/profile.h"

/* Adds a mark without an event. */
static Mark *add_mark(Marks *m)
{
  if (m->n == m->room) {
    uint32_t room = m->room ? 2 * m->room : 64;
    Mark *at = realloc(m->at, room * sizeof *at);
    if (!at) return NULL;
    m->at = at;
    m->room = room;
  }
  m->at[m->n] = (Mark){NULL, 0};
  return &m->at[m->n++];
}

/* Adds an event to the graph. A step that is tried out has no marks. */
ampc_status cuda_mark(Device *device, int64_t command)
{
  CudaDevice *d = cuda_of(device);
  if (!d->marks) return AMPC_OK;
  Mark *mark = add_mark(d->marks);
  if (!mark) return ampc_fail(AMPC_RUN_FAILED, "out of memory for times of commands");
  mark->command = command;
  ampc_status status = CUDA(d, cuEventCreate(&mark->event, CU_EVENT_DEFAULT));
  if (status) return status;
  if (d->marks->direct) return CUDA(d, cuEventRecord(mark->event, d->stream));
  return CUDA(d, cuEventRecordWithFlags(mark->event, d->stream, CU_EVENT_RECORD_EXTERNAL));
}

ampc_status marks_read(CudaDevice *d, const Marks *m)
{
  Profile *p = d->device.profile;
  double begin = seconds_now();
  ampc_status status = cuda_wait(&d->device);
  double end = seconds_now();
  time_add(&p->host, (TimeSpan){begin, end, TIME_wait, 0});
  for (uint32_t i = 0; i < m->n && !status; i++) {
    float ms = 0;
    status = CUDA(d, cuEventElapsedTime(&ms, m->at[i].event, m->at[m->n - 1].event));
    if (!status) profile_mark(p, m->at[i].command, end - (double)ms * 1e-3);
  }
  return status;
}

void marks_free(CudaDevice *d, Marks *m)
{
  for (uint32_t i = 0; i < m->n; i++)
    if (m->at[i].event) d->api->cuEventDestroy_v2(m->at[i].event);
  free(m->at);
}

ampc_status cuda_step_direct(CudaDevice *d, ampc_status (*body)(void *context), void *context)
{
  Marks marks = {.direct = true};
  d->marks = &marks;
  ampc_status status = body(context);
  d->marks = NULL;
  if (!status) status = marks_read(d, &marks);
  marks_free(d, &marks);
  return status;
}
