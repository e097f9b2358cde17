/* A CUDA driver without a GPU, for tests. This header declares what its files share. The functions
 * of driver.def, blas.def and nvrtc.def are exported under NVIDIA's names; README.md lists their
 * checks.
 *
 * A call that CUDA refuses returns CUDA's status. A mistake that CUDA does not detect, but that
 * makes results wrong on a GPU, ends the program with one line that begins with "mock:". */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "compiler/nvrtc/nvrtc_api.h"
#include "runtime/cuda/cuda_api.h"

#define EXPORT __attribute__((visibility("default")))
/* For functions that access only copies made by the mock. Sanitizers would find no bug of ampc in
 * these functions, and would take a minute. */
#define UNCHECKED                          __attribute__((no_sanitize("address", "undefined")))
#define CUDA_API(result, name, parameters) EXPORT result name parameters;
#include "runtime/cuda/driver.def"
#define CUDA_API(result, name, parameters) EXPORT result name parameters;
#include "runtime/cuda/blas.def"
#define CUDA_API(result, name, parameters) EXPORT result name parameters;
#include "compiler/nvrtc/nvrtc.def"

enum { /* results of the driver that ampc does not distinguish */
       MOCK_INVALID_VALUE = 1,
       MOCK_NOT_INITIALIZED = 3,
       MOCK_INVALID_DEVICE = 101,
       MOCK_INVALID_IMAGE = 200,
       MOCK_INVALID_CONTEXT = 201,
       MOCK_INVALID_HANDLE = 400,
       MOCK_NOT_FOUND = 500,
       MOCK_ILLEGAL_ADDRESS = 700,
       MOCK_MISALIGNED_ADDRESS = 716,
       MOCK_CAPTURE_UNSUPPORTED = 900,
       MOCK_CAPTURE_INVALIDATED = 901,
       MOCK_CAPTURE_UNMATCHED = 903,
       MOCK_CAPTURE_UNJOINED = 904,
       MOCK_CAPTURE_ISOLATION = 905,
       MOCK_CAPTURE_IMPLICIT = 906,
       MOCK_CAPTURED_EVENT = 907,
};

/* ---- counters: mock_count("stream_syncs"), and one per line in $MOCK_CUDA_REPORT ---- */
typedef enum Count {
#define COUNTS(X)                                                                                  \
  X(stream_syncs)                                                                                  \
  X(event_syncs)                                                                                   \
  X(event_queries)                                                                                 \
  X(implicit_syncs)                                                                                \
  X(pageable_copies)                                                                               \
  X(copies)                                                                                        \
  X(launches)                                                                                      \
  X(library_calls)                                                                                 \
  X(graph_launches)                                                                                \
  X(captures)                                                                                      \
  X(meanwhile) /* calls that open or close something while another thread captures */              \
  X(allocations)                                                                                   \
  X(modules)                                                                                       \
  X(libraries) /* handles of cuBLASLt */                                                           \
  X(kernels_run)                                                                                   \
  X(products_run)                                                                                  \
  X(convolutions_run)                                                                              \
  X(graphs_run) /* graphs of cuDNN that are no convolution */                                      \
  X(held)       /* objects and memory that are not freed yet */
#define X(name) COUNT_##name,
  COUNTS(X)
#undef X
      COUNT_COUNT
} Count;
EXPORT long mock_count(const char *name);
EXPORT void mock_add(Count which, long n);

/* ---- the entry of every exported function ---- */

/* One call runs at a time, in any thread. `MOCK_ENTER(NEEDS_CONTEXT)` returns an error if the
 * driver is not started, the thread has no context, or an earlier error is sticky. */
typedef enum Need { NEEDS_NOTHING, NEEDS_DRIVER, NEEDS_CONTEXT } Need;
EXPORT CuResult mock_enter(Need need);
EXPORT void mock_leave(int *entered);
#define MOCK_ENTER(need)                                                                           \
  __attribute__((cleanup(mock_leave))) int entered_ = mock_enter(need);                            \
  if (entered_) return entered_

EXPORT _Noreturn void mock_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints why a call is refused and returns the status. */
EXPORT int mock_refuse(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
EXPORT long mock_setting(const char *name, long otherwise); /* value of an environment variable */
EXPORT void mock_stick(CuResult error);                     /* makes every later call return it */
EXPORT int mock_device(void);                               /* device of the current context */
EXPORT int mock_capability(void);                           /* its capability; 90 for sm_90 */

/* ---- memory ---- */

/* Returns the bytes of a device address, or NULL if there is no such memory. They lie elsewhere, so
 * the host cannot read them by the address. `what` names the user in messages. */
EXPORT void *mock_device_bytes(uint64_t address, size_t bytes, const char *what);
bool mock_is_pinned(const void *host, size_t bytes);
void mock_watch_faults(void);           /* installs a handler for segmentation faults */
EXPORT extern const char *mock_running; /* the work that the device runs, or NULL */
EXPORT extern bool mock_repeating;      /* the running work is part of a graph */

/* ---- work ---- */

enum { MAX_ARGUMENTS = 512, LIBRARY_DATA = 448 };

typedef struct Op Op;
struct Op {
  Op *next;
  CuResult (*run)(const Op *op); /* CUDA_ERROR_NOT_READY: it waits for another process; run again */
  void (*queued)(Op *op);        /* called whenever the op is put on a stream; may be NULL */
  void (*kept)(const Op *op, int n); /* called when n more graphs have the op; may be NULL */
  const char *label;
  CuStream stream; /* where it was put */
  int lane;        /* in a graph: the number of its stream in the capture */
  bool of_step;    /* work of steps, not a copy from or to the host, not an event */
  bool of_graph;
  union {
    struct {
      CuFunction function;
      unsigned grid, block;
      void *argument[MAX_ARGUMENTS];
    } launch;
    struct {
      uint64_t to, from;
      size_t bytes;
      void *staged;      /* a pageable source's bytes at the call; freed later */
      uint64_t checksum; /* checksum of a pinned source at the call */
    } copy;
    struct {
      CuPointer to;
      size_t pitch, width, height, each; /* in bytes, but height */
      unsigned value;
    } fill;
    struct {
      CuEvent event;
      long turn;
    } event;
    struct {
      CuResult (*run)(const void *data);
      _Alignas(8) unsigned char data[LIBRARY_DATA];
    } library;
  } as;
};

/* Appends a copy of op to the stream, or to the graph that the stream captures. */
EXPORT CuResult mock_queue(CuStream stream, const Op *op);
/* Queues the work of a library. `data` (at most LIBRARY_DATA bytes) is copied. */
EXPORT CuResult mock_queue_library(CuStream stream, const char *label,
                                   CuResult (*run)(const void *data), const void *data,
                                   size_t size);
EXPORT bool mock_is_capturing(CuStream stream);
/* Returns an error and invalidates the capture if this thread captures, or if any stream captures
 * in the global mode. For calls that are forbidden then. */
CuResult mock_not_while_capturing(const char *call);
/* mock_not_while_capturing for calls that open or close something; counted if another captures. */
EXPORT CuResult mock_opens(const char *call);
EXPORT CuResult mock_drain(void); /* runs all streams, for calls that wait for the device */
EXPORT void mock_progress(void);  /* runs what need not wait for another process */
EXPORT void mock_nap(void);       /* sleeps while another process works */

/* A graph and, while it is captured, its capture. The stream that began it is lane 0; a stream that
 * waits for an event of the capture becomes a further lane. */
enum { MOST_LANES = 4 };
struct CUgraph_st {
  Op *first, *last;
  CuCaptureMode mode;
  pthread_t capturer; /* the thread that started the capture */
  bool spoilt;
  int lanes;
  long n, latest[MOST_LANES]; /* ops so far; the number of each lane's last op */
  long joined[MOST_LANES];    /* the last op of each lane for which lane 0 waits */
};
CuStream mock_lane_new(void); /* a stream for the work of a further lane */
CuGraph mock_graph_new(void);
void mock_graph_add(CuGraph graph, const Op *op);
void mock_put(CuStream stream, const Op *op); /* appends op even if the stream captures */
