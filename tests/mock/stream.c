/* Streams, events, copies. Work stays queued until the program waits for it. So results that are
 * read too early are missing, and memory that is reused too early visibly changes. With
 * MOCK_CUDA_EAGER=1 work runs during the call: the opposite extreme. With MOCK_CUDA_EAGER=2 copies
 * between host and device run during the call if their stream got nothing else before, and all
 * other work stays queued. Then these copies run as early as events allow: before steps, and before
 * the fill that zeroes memory. */
#include "mock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LONGEST_QUEUE = 1 << 16, POISON = 0xeb };

struct CUstream_st {
  CuStream next;
  Op *first, *last;
  long n;
  CuGraph capture; /* NULL: not capturing */
  int lane;        /* in the capture */
  bool steps;      /* the stream got work of a step */
  int device;
};

struct CUevent_st {
  CuEvent next;
  CuStream stream;     /* the stream of the last recording */
  long recorded, done; /* number of recordings; how many of them were reached */
  CuGraph captured;    /* the capture of the last recording, or &ended; NULL: none */
  CuEvent hidden;      /* stands for this event in the graph that is captured */
  int lane;            /* where it was captured */
  long place;
  bool timed;
  struct timespec at; /* when it was last reached */
};

static CuStream streams;
static CuEvent events;
static struct CUgraph_st ended; /* stands for all captures that have ended */

/* ---- queues ---- */

/* Runs the first op. It stays if it must wait for another process. */
static CuResult run_first(CuStream s)
{
  Op *op = s->first;
  mock_running = op->label;
  mock_repeating = op->of_graph;
  CuResult status = op->run(op);
  mock_running = NULL;
  if (status == CUDA_ERROR_NOT_READY) return status;
  if (status) mock_stick(status);
  s->first = op->next;
  if (!s->first) s->last = NULL;
  s->n--;
  free(op);
  return status;
}

void mock_nap(void)
{
  nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* Runs what need not wait for another process. */
static CuResult run_ready(CuStream s)
{
  CuResult status = CUDA_SUCCESS;
  while (s->first && !status) status = run_first(s);
  return status == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : status;
}

static CuResult drain(CuStream s)
{
  CuResult status = run_ready(s);
  for (; s->first && !status; status = run_ready(s)) mock_nap();
  return status;
}

void mock_progress(void)
{
  __attribute__((cleanup(mock_leave))) int entered = mock_enter(NEEDS_NOTHING);
  (void)entered;
  for (CuStream s = streams; s; s = s->next) run_ready(s);
}

CuResult mock_drain(void)
{
  CuResult status = CUDA_SUCCESS;
  for (CuStream s = streams; s && !status; s = s->next) status = drain(s);
  return status;
}

static bool stream_exists(CuStream stream)
{
  for (CuStream s = streams; s; s = s->next)
    if (s == stream) return true;
  return false;
}

void mock_put(CuStream stream, const Op *op)
{
  Op *kept = malloc(sizeof *kept);
  if (!kept) mock_misuse("out of memory");
  *kept = *op;
  kept->next = NULL;
  kept->stream = stream;
  if (kept->queued) kept->queued(kept);
  *(stream->last ? &stream->last->next : &stream->first) = kept;
  stream->last = kept;
  stream->n++;
}

/* Checks the stream. ampc must not use the default one: it would synchronize others implicitly. */
static CuResult check_stream(CuStream stream)
{
  if (!stream) return mock_refuse(MOCK_INVALID_HANDLE, "the mock has no default stream");
  if (!stream_exists(stream)) return mock_refuse(MOCK_INVALID_HANDLE, "no such stream");
  if (stream->device != mock_device())
    return mock_refuse(MOCK_INVALID_HANDLE, "a stream of another device");
  if (stream->capture && stream->capture->spoilt) return MOCK_CAPTURE_INVALIDATED;
  return CUDA_SUCCESS;
}

CuResult mock_queue(CuStream stream, const Op *op)
{
  CuResult status = check_stream(stream);
  if (status) return status;
  if (stream->capture) {
    CuGraph g = stream->capture;
    Op added = *op;
    added.lane = stream->lane;
    mock_graph_add(g, &added);
    g->latest[stream->lane] = ++g->n;
    return CUDA_SUCCESS;
  }
  mock_put(stream, op);
  if (op->of_step) stream->steps = true;
  long eager = mock_setting("MOCK_CUDA_EAGER", 0);
  if (eager == 1 || (eager == 2 && !stream->steps)) return run_ready(stream);
  while (stream->n > LONGEST_QUEUE && !status) status = run_first(stream);
  return status == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : status;
}

static CuResult run_library(const Op *op)
{
  return op->as.library.run(op->as.library.data);
}

CuResult mock_queue_library(CuStream stream, const char *label, CuResult (*run)(const void *data),
                            const void *data, size_t size)
{
  Op op = {.run = run_library, .label = label, .of_step = true, .as.library = {.run = run}};
  if (size > LIBRARY_DATA) mock_misuse("%s: too much data for the mock", label);
  memcpy(op.as.library.data, data, size);
  return mock_queue(stream, &op);
}

/* ---- streams ---- */

CuStream mock_lane_new(void)
{
  CuStream s = calloc(1, sizeof *s);
  if (!s) mock_misuse("out of memory");
  s->device = mock_device();
  s->next = streams;
  return streams = s;
}

CuResult cuStreamCreate(CuStream *out, unsigned flags)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (flags != CU_STREAM_NON_BLOCKING)
    return mock_refuse(MOCK_INVALID_VALUE, "the mock has only streams that do not block");
  CuStream s = mock_lane_new();
  mock_add(COUNT_held, 1);
  *out = s;
  return CUDA_SUCCESS;
}

CuResult cuStreamDestroy_v2(CuStream stream)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  CuResult status = check_stream(stream);
  if (status) return status;
  if (stream->capture) return mock_refuse(MOCK_CAPTURE_UNSUPPORTED, "the stream captures");
  status = drain(stream);
  for (CuStream *at = &streams; *at; at = &(*at)->next)
    if (*at == stream) {
      *at = stream->next;
      break;
    }
  for (CuEvent e = events; e; e = e->next)
    if (e->stream == stream) e->stream = NULL;
  free(stream);
  mock_add(COUNT_held, -1);
  return status;
}

CuResult cuStreamSynchronize(CuStream stream)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  CuResult status = check_stream(stream);
  if (status) return status;
  status = mock_not_while_capturing("cuStreamSynchronize");
  if (status) return status;
  if (stream->capture)
    return mock_refuse(MOCK_CAPTURE_UNSUPPORTED, "another thread captures there");
  mock_add(COUNT_stream_syncs, 1);
  return drain(stream);
}

bool mock_is_capturing(CuStream stream)
{
  return stream && stream_exists(stream) && stream->capture;
}

CuResult mock_not_while_capturing(const char *call)
{
  for (CuStream s = streams; s; s = s->next)
    if (s->capture && (s->capture->mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
                       pthread_equal(s->capture->capturer, pthread_self()))) {
      s->capture->spoilt = true;
      return mock_refuse(MOCK_CAPTURE_UNSUPPORTED, "%s while a stream captures", call);
    }
  return CUDA_SUCCESS;
}

CuResult mock_opens(const char *call)
{
  bool other = false;
  for (CuStream s = streams; s; s = s->next)
    other = other || (s->capture && !pthread_equal(s->capture->capturer, pthread_self()));
  mock_add(COUNT_meanwhile, other);
  return mock_not_while_capturing(call);
}

CuResult cuStreamBeginCapture_v2(CuStream stream, CuCaptureMode mode)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  CuResult status = check_stream(stream);
  if (status) return status;
  if (mode < 0 || mode > 2) return mock_refuse(MOCK_INVALID_VALUE, "no capture mode %d", mode);
  if (stream->capture) return mock_refuse(MOCK_CAPTURE_UNSUPPORTED, "the stream captures already");
  CuGraph g = stream->capture = mock_graph_new();
  g->mode = mode;
  g->capturer = pthread_self();
  g->lanes = 1;
  stream->lane = 0;
  mock_add(COUNT_captures, 1);
  return CUDA_SUCCESS;
}

/* Brings a stream into a capture. */
static void enter_capture(CuStream stream, CuGraph g)
{
  if (g->lanes == MOST_LANES) mock_misuse("a capture of more streams than the mock expects");
  stream->capture = g;
  stream->lane = g->lanes++;
}

/* Ends a capture in all of its streams and events. Returns whether all work was joined. */
static bool leave_capture(CuGraph g)
{
  bool joined = true;
  for (CuStream s = streams; s; s = s->next)
    if (s->capture == g) s->capture = NULL;
  for (CuEvent e = events; e; e = e->next)
    if (e->captured == g) e->captured = &ended;
  for (int i = 1; i < g->lanes; i++) joined = joined && g->latest[i] <= g->joined[i];
  return joined;
}

CuResult cuStreamEndCapture(CuStream stream, CuGraph *out)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  *out = NULL;
  if (!stream || !stream_exists(stream)) return MOCK_INVALID_HANDLE;
  if (!stream->capture) return mock_refuse(MOCK_INVALID_VALUE, "the stream does not capture");
  if (stream->lane) return mock_refuse(MOCK_CAPTURE_UNMATCHED, "another stream began the capture");
  CuGraph graph = stream->capture;
  bool joined = leave_capture(graph);
  if (graph->spoilt || !joined) {
    bool spoilt = graph->spoilt;
    cuGraphDestroy(graph);
    return spoilt ? MOCK_CAPTURE_INVALIDATED
                  : mock_refuse(MOCK_CAPTURE_UNJOINED, "a stream of the capture was not joined");
  }
  *out = graph;
  return CUDA_SUCCESS;
}

/* ---- events ---- */

static bool event_exists(CuEvent event)
{
  for (CuEvent e = events; e; e = e->next)
    if (e == event) return true;
  return false;
}

CuResult cuEventCreate(CuEvent *out, unsigned flags)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (flags & ~7u) return mock_refuse(MOCK_INVALID_VALUE, "flags %#x of an event", flags);
  CuEvent e = calloc(1, sizeof *e);
  if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
  e->next = events;
  events = e;
  e->timed = !(flags & CU_EVENT_DISABLE_TIMING);
  mock_add(COUNT_held, 1);
  *out = e;
  return CUDA_SUCCESS;
}

static CuResult run_event(const Op *op)
{
  if (!event_exists(op->as.event.event)) return CUDA_SUCCESS;
  op->as.event.event->done = op->as.event.turn;
  clock_gettime(CLOCK_MONOTONIC, &op->as.event.event->at);
  return CUDA_SUCCESS;
}

/* The event of a graph is recorded anew whenever the graph is launched. */
static void record_again(Op *op)
{
  CuEvent e = op->as.event.event;
  e->stream = op->stream;
  op->as.event.turn = ++e->recorded;
}

static void wait_again(Op *op)
{
  op->as.event.turn = op->as.event.event->recorded;
}

/* Adds an event to a graph. It is never freed, because graphs are copied. */
static CuResult capture_event(CuEvent event, CuStream stream)
{
  CuEvent hidden = calloc(1, sizeof *hidden);
  if (!hidden) return CUDA_ERROR_OUT_OF_MEMORY;
  hidden->next = events;
  events = hidden;
  Op op = {.run = run_event,
           .queued = record_again,
           .label = "an event inside a graph",
           .as.event = {.event = hidden}};
  CuResult status = mock_queue(stream, &op);
  event->captured = stream->capture;
  event->hidden = hidden;
  event->lane = stream->lane;
  event->place = stream->capture->n;
  return status;
}

CuResult cuEventRecord(CuEvent event, CuStream stream)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (!event_exists(event)) return mock_refuse(MOCK_INVALID_HANDLE, "no such event");
  CuResult status = check_stream(stream);
  if (status) return status;
  if (stream->capture) return capture_event(event, stream);
  event->captured = NULL;
  event->stream = stream;
  Op op = {.run = run_event,
           .label = "an event",
           .as.event = {.event = event, .turn = ++event->recorded}};
  return mock_queue(stream, &op);
}

/* In a capture, an external event is a node of the graph. */
CuResult cuEventRecordWithFlags(CuEvent event, CuStream stream, unsigned flags)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (!event_exists(event)) return mock_refuse(MOCK_INVALID_HANDLE, "no such event");
  CuResult status = check_stream(stream);
  if (status) return status;
  if (flags != CU_EVENT_RECORD_EXTERNAL || !stream->capture)
    return mock_refuse(MOCK_INVALID_VALUE, "flags %#x of an event, %s a capture", flags,
                       stream->capture ? "in" : "without");
  event->stream = stream;
  Op op = {.run = run_event,
           .label = "an event of a graph",
           .as.event = {.event = event, .turn = ++event->recorded}};
  return mock_queue(stream, &op);
}

CuResult cuEventElapsedTime(float *out, CuEvent from, CuEvent to)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (!event_exists(from) || !event_exists(to))
    return mock_refuse(MOCK_INVALID_HANDLE, "no such event");
  if (!from->timed || !to->timed)
    return mock_refuse(MOCK_INVALID_HANDLE, "an event without timing");
  if (!from->recorded || !to->recorded) return mock_refuse(MOCK_INVALID_HANDLE, "never recorded");
  if (from->done < from->recorded || to->done < to->recorded) return CUDA_ERROR_NOT_READY;
  *out = (float)((double)(to->at.tv_sec - from->at.tv_sec) * 1e3 +
                 (double)(to->at.tv_nsec - from->at.tv_nsec) * 1e-6);
  return CUDA_SUCCESS;
}

/* Runs the event's stream until the event, as it was recorded when the wait was called. */
static CuResult run_wait(const Op *op)
{
  CuEvent e = op->as.event.event;
  CuResult status = CUDA_SUCCESS;
  if (!event_exists(e)) mock_misuse("a stream waits for an event that was destroyed");
  while (!status && e->done < op->as.event.turn) {
    if (!e->stream || !e->stream->first) mock_misuse("a stream waits for what will never be");
    status = run_first(e->stream);
  }
  mock_running = op->label;
  mock_repeating = op->of_graph;
  return status;
}

/* Adds a wait to a graph. A stream that captures nothing yet enters the capture of the event. */
static CuResult capture_wait(CuStream stream, CuEvent event)
{
  CuGraph g = event->captured;
  if (!stream->capture && g && g != &ended) enter_capture(stream, g);
  if (g != stream->capture)
    return mock_refuse(g ? MOCK_CAPTURED_EVENT : MOCK_CAPTURE_ISOLATION,
                       "a wait for an event that is not of this capture");
  if (stream->lane == 0) g->joined[event->lane] = event->place;
  Op op = {.run = run_wait,
           .queued = wait_again,
           .label = "a wait inside a graph",
           .as.event = {.event = event->hidden}};
  return mock_queue(stream, &op);
}

CuResult cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned flags)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (!event_exists(event)) return mock_refuse(MOCK_INVALID_HANDLE, "no such event");
  CuResult status = check_stream(stream);
  if (status) return status;
  if (flags) return mock_refuse(MOCK_INVALID_VALUE, "flags %#x of a wait", flags);
  if (stream->capture || event->captured) return capture_wait(stream, event);
  Op op = {.run = run_wait,
           .label = "a wait for an event",
           .as.event = {.event = event, .turn = event->recorded}};
  return mock_queue(stream, &op);
}

/* Reports "not ready" at the first query, so that callers are tested for it. */
CuResult cuEventQuery(CuEvent event)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (!event_exists(event)) return mock_refuse(MOCK_INVALID_HANDLE, "no such event");
  if (event->captured) return mock_refuse(MOCK_CAPTURED_EVENT, "cuEventQuery");
  CuResult status = mock_not_while_capturing("cuEventQuery");
  if (status) return status;
  mock_add(COUNT_event_queries, 1);
  if (event->done == event->recorded) return CUDA_SUCCESS;
  if (event->stream && event->stream->first) status = run_first(event->stream);
  return status ? status : CUDA_ERROR_NOT_READY;
}

CuResult cuEventSynchronize(CuEvent event)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (!event_exists(event)) return mock_refuse(MOCK_INVALID_HANDLE, "no such event");
  if (event->captured) return mock_refuse(MOCK_CAPTURED_EVENT, "cuEventSynchronize");
  CuResult status = mock_not_while_capturing("cuEventSynchronize");
  mock_add(COUNT_event_syncs, 1);
  while (!status && event->done < event->recorded && event->stream && event->stream->first) {
    status = run_first(event->stream);
    if (status != CUDA_ERROR_NOT_READY) continue;
    mock_nap();
    status = CUDA_SUCCESS;
  }
  return status;
}

CuResult cuEventDestroy_v2(CuEvent event)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  for (CuEvent *at = &events; *at; at = &(*at)->next)
    if (*at == event) {
      *at = event->next;
      free(event);
      mock_add(COUNT_held, -1);
      return CUDA_SUCCESS;
    }
  return mock_refuse(MOCK_INVALID_HANDLE, "no such event");
}
