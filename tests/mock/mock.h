/* A CUDA driver without a GPU, for tests: what its parts share. The functions of driver.def,
 * blas.def and nvrtc.def are exported under NVIDIA's names; README.md says what they check.
 *
 * What CUDA itself would refuse gets CUDA's status. What CUDA would not notice, and a GPU would pay
 * for with wrong numbers, ends the program with one line that begins with "mock:". */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "compiler/nvrtc/nvrtc_api.h"
#include "runtime/cuda/cuda_api.h"

#define EXPORT __attribute__((visibility("default")))
/* Such a function reads and writes only copies that the mock made. Sanitizers would find no fault
 * of the product there, and they would take a minute. */
#define UNCHECKED                          __attribute__((no_sanitize("address", "undefined")))
#define CUDA_API(result, name, parameters) EXPORT result name parameters;
#include "runtime/cuda/driver.def"
#define CUDA_API(result, name, parameters) EXPORT result name parameters;
#include "runtime/cuda/blas.def"
#define CUDA_API(result, name, parameters) EXPORT result name parameters;
#include "compiler/nvrtc/nvrtc.def"

enum { /* results of the driver that ampc has no need to tell apart */
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
       MOCK_CAPTURE_IMPLICIT = 906,
       MOCK_CAPTURED_EVENT = 907,
};

/* ---- what has happened: mock_count("stream_syncs"), and a line each in $MOCK_CUDA_REPORT ---- */
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
  X(graphs_run) /* of cuDNN that are no convolution */                                             \
  X(held)       /* objects and memory that were made and not given back */
#define X(name) COUNT_##name,
  COUNTS(X)
#undef X
      COUNT_COUNT
} Count;
EXPORT long mock_count(const char *name);
EXPORT void mock_add(Count which, long n);

/* ---- the entry of every exported function ---- */

/* One call at a time, whatever the thread. `MOCK_ENTER(NEEDS_CONTEXT)` returns what such a call
 * returns when the driver is not started, the thread has no context or an error has stuck. */
typedef enum Need { NEEDS_NOTHING, NEEDS_DRIVER, NEEDS_CONTEXT } Need;
EXPORT CuResult mock_enter(Need need);
EXPORT void mock_leave(int *entered);
#define MOCK_ENTER(need)                                                                           \
  __attribute__((cleanup(mock_leave))) int entered_ = mock_enter(need);                            \
  if (entered_) return entered_

EXPORT _Noreturn void mock_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says why a call is refused and gives back the status. */
EXPORT int mock_refuse(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
EXPORT long mock_setting(const char *name, long otherwise); /* a number of the environment */
EXPORT void mock_stick(CuResult error);                     /* every later call returns it */
int mock_device(void);                                      /* whose context is current */
EXPORT int mock_capability(void);                           /* 90: of that device */

/* ---- memory ---- */

/* Where work finds the bytes of a device address: never there itself, so that the host cannot read
 * them. `what` names the user in messages. NULL where there is no such memory. */
EXPORT void *mock_device_bytes(uint64_t address, size_t bytes, const char *what);
bool mock_is_pinned(const void *host, size_t bytes);
void mock_watch_faults(void);           /* says whose fault a segmentation fault is */
EXPORT extern const char *mock_running; /* what the device is doing; NULL: nothing */
EXPORT extern bool mock_repeating;      /* it does so as a part of a graph */

/* ---- work ---- */

enum { MAX_ARGUMENTS = 512, LIBRARY_DATA = 384 };

typedef struct Op Op;
struct Op {
  Op *next;
  CuResult (*run)(const Op *op);
  void (*queued)(Op *op); /* when it is put on a stream, each time; may be NULL */
  const char *label;
  bool of_step; /* what steps are made of: not a copy from or to the host, not an event */
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
      void *staged;      /* pageable source: its bytes at the time of the call; freed after */
      uint64_t checksum; /* pinned source: of its bytes at the time of the call */
    } copy;
    struct {
      CuPointer to;
      size_t bytes;
      unsigned char value;
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

/* Puts a copy of op on the stream, or into the graph that the stream is capturing. */
CuResult mock_queue(CuStream stream, const Op *op);
/* A library's work: data (at most LIBRARY_DATA bytes) is copied. */
EXPORT CuResult mock_queue_library(CuStream stream, const char *label,
                                   CuResult (*run)(const void *data), const void *data,
                                   size_t size);
EXPORT bool mock_is_capturing(CuStream stream);
/* What this thread must not call while it captures, nor any while a stream captures in the global
 * mode; spoils the capture. */
CuResult mock_not_while_capturing(const char *call);
/* The same for what opens or closes memory, modules, libraries; counted when another captures. */
EXPORT CuResult mock_opens(const char *call);
CuResult mock_drain(void); /* all streams, for calls that wait for the device by themselves */

struct CUgraph_st {
  Op *first, *last;
};
CuGraph mock_graph_new(void);
void mock_graph_add(CuGraph graph, const Op *op);
void mock_put(CuStream stream, const Op *op); /* past any capture */
