/* The mock itself: correct use works, and every misuse that it can detect is detected. Each case
 * runs in a process of its own and must end with the expected status (or signal) and message. */
#include "cases.h"
#include <math.h>

enum { N = 1000, BYTES = N * 4 };

static char *image;
static CuStream stream;
static CuModule module;
static CuFunction add_one;
static CuPointer memory;
static LtHandle library;

/* ---- the start of all cases ---- */

static const char kernels[] =
    "typedef float real;\n"
    "#define DEVICE static __device__ __forceinline__\n"
    "/* the code below is the same on every machine */\n"
    "__global__ void add_one(const float *__restrict__ x, float *__restrict__ y)\n"
    "{\n  GRID_LOOP (int, i, 1000) y[i] = x[i] + 1;\n}\n"
    "__global__ void too_far(float *x)\n"
    "{\n  GRID_LOOP (int, i, 4096) x[i] = 1;\n}\n"
    "__global__ void one_too_far(float *x)\n"
    "{\n  ONE_THREAD x[1000] = 1;\n}\n";

static NvrtcResult compile(const char *text, const char *arch, const char *contraction, char **out)
{
  const char *options[] = {arch, contraction, "--std=c++17"};
  NvrtcProgram p;
  size_t size;
  MUST(nvrtcCreateProgram(&p, text, "kernels.cu", 0, NULL, NULL) == 0);
  NvrtcResult r = nvrtcCompileProgram(p, 3, options);
  if (r == 0) {
    MUST(nvrtcGetCUBINSize(p, &size) == 0);
    *out = malloc(size);
    MUST(nvrtcGetCUBIN(p, *out) == 0);
  }
  nvrtcDestroyProgram(&p);
  return r;
}

static void open_all(void)
{
  open_context();
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == 0);
  MUST(cuModuleLoadDataEx(&module, image, 0, NULL, NULL) == 0);
  MUST(cuModuleGetFunction(&add_one, module, "add_one") == 0);
  MUST(cuMemAlloc_v2(&memory, BYTES) == 0);
  MUST(cublasLtCreate(&library) == 0);
}

static CuResult launch(CuFunction f, unsigned grid, unsigned block, CuPointer x, CuPointer y)
{
  void *arguments[] = {&x, &y};
  return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, stream, arguments, NULL);
}

static CuPointer new_memory(size_t bytes)
{
  CuPointer p;
  MUST(cuMemAlloc_v2(&p, bytes) == 0);
  return p;
}

static char *new_pinned(size_t bytes)
{
  void *p;
  MUST(cuMemAllocHost_v2(&p, bytes) == 0);
  return p;
}

static CuResult both(CuResult called) /* returns the error of the call, or of its queued work */
{
  return called ? called : cuStreamSynchronize(stream);
}

/* ---- correct use ---- */

static int plain_step(void)
{
  float *x = (float *)(void *)new_pinned(2 * BYTES), *y = x + N;
  CuPointer to = new_memory(BYTES);
  for (int i = 0; i < N; i++) x[i] = (float)i;
  MUST(cuMemcpyHtoDAsync_v2(memory, x, BYTES, stream) == 0);
  MUST(launch(add_one, 7, 64, memory, to) == 0);
  MUST(cuMemcpyDtoHAsync_v2(y, to, BYTES, stream) == 0);
  MUST(y[3] != 4); /* no call has waited for the copy yet */
  MUST(cuStreamSynchronize(stream) == 0);
  for (int i = 0; i < N; i++) CHECK(y[i] == (float)i + 1);
  return check_failures != 0;
}

static int graph_replay(void)
{
  CuGraph graph;
  CuGraphExec exec;
  float *y = (float *)(void *)new_pinned(BYTES);
  MUST(cuMemsetD8Async(memory, 0, BYTES, stream) == 0);
  MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == 0);
  MUST(launch(add_one, 1, 32, memory, memory) == 0);
  MUST(cuStreamEndCapture(stream, &graph) == 0 &&
       cuGraphInstantiateWithFlags(&exec, graph, 0) == 0);
  MUST(cuGraphDestroy(graph) == 0);
  for (int i = 0; i < 3; i++) MUST(cuGraphLaunch(exec, stream) == 0);
  MUST(cuMemcpyDtoHAsync_v2(y, memory, BYTES, stream) == 0 && cuStreamSynchronize(stream) == 0);
  CHECK(y[0] == 3 && y[N - 1] == 3); /* capturing did not run the graph */
  CHECK(mock_count("kernels_run") == 3 && mock_count("launches") == 1);
  return check_failures != 0;
}

static int event_order(void)
{
  CuEvent event;
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == 0 && cuEventQuery(event) == 0);
  MUST(cuMemsetD8Async(memory, 0, BYTES, stream) == 0 && cuEventRecord(event, stream) == 0);
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  MUST(launch(add_one, 1, 32, memory, memory) == 0 && cuEventSynchronize(event) == 0);
  CHECK(cuEventQuery(event) == 0 && mock_count("kernels_run") == 0); /* only up to the event */
  return check_failures != 0;
}

static int stream_waits(void)
{
  CuStream second;
  CuEvent event;
  char *y = new_pinned(1);
  MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING) == 0);
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == 0);
  MUST(cuStreamWaitEvent(second, event, 0) == 0); /* never recorded: no effect */
  MUST(cuMemsetD8Async(memory, 7, BYTES, stream) == 0 && cuEventRecord(event, stream) == 0);
  MUST(cuMemsetD8Async(memory, 8, BYTES, stream) == 0); /* after the event */
  MUST(cuStreamWaitEvent(second, event, 0) == 0);
  MUST(cuMemcpyDtoHAsync_v2(y, memory, 1, second) == 0 && cuStreamSynchronize(second) == 0);
  return *y != 7;
}

static int all_given_back(void)
{
  MUST(cublasLtDestroy(library) == 0 && cuMemFree_v2(memory) == 0 && cuModuleUnload(module) == 0);
  MUST(cuStreamDestroy_v2(stream) == 0 && cuDevicePrimaryCtxRelease_v2(0) == 0);
  return (int)mock_count("held");
}

/* ---- memory ---- */

static int host_touches_device(void)
{
  return *(volatile int *)memory;
}

static int used_after_free(void)
{
  MUST(cuMemFree_v2(memory) == 0);
  return both(cuMemsetD8Async(memory, 0, 4, stream));
}

static int kernel_after_free(void)
{
  CuPointer x = new_memory(BYTES);
  MUST(cuMemFree_v2(x) == 0 && launch(add_one, 1, 32, x, memory) == 0);
  return cuStreamSynchronize(stream);
}

static int sticks(void)
{
  kernel_after_free();
  CuPointer p;
  return cuMemAlloc_v2(&p, 4);
}

static int freed_twice(void)
{
  MUST(cuMemFree_v2(memory) == 0);
  return cuMemFree_v2(memory);
}

static int kernel_runs_past(void)
{
  CuFunction f;
  MUST(cuModuleGetFunction(&f, module, "too_far") == 0);
  return both(launch(f, 1, 32, memory, 0));
}

static int kernel_writes_after_end(void)
{
  CuFunction f;
  MUST(cuModuleGetFunction(&f, module, "one_too_far") == 0);
  MUST(both(launch(f, 1, 32, memory, 0)) == 0);
  return cuMemFree_v2(memory);
}

static int copy_too_long(void)
{
  static char bytes[BYTES + 1];
  return cuMemcpyHtoDAsync_v2(memory, bytes, sizeof bytes, stream);
}

static int pointer_of_the_host(void)
{
  static float x[N];
  return both(launch(add_one, 1, 32, (CuPointer)(uintptr_t)x, memory));
}

static int argument_not_aligned(void)
{
  return both(launch(add_one, 1, 32, memory + 2, memory));
}

static int pinned_changes_too_early(void)
{
  char *x = new_pinned(BYTES);
  memset(x, 1, BYTES);
  MUST(cuMemcpyHtoDAsync_v2(memory, x, BYTES, stream) == 0);
  x[5] = 2;
  return cuStreamSynchronize(stream);
}

static int pageable_may_change(void)
{
  char x[BYTES], *y = new_pinned(BYTES);
  memset(x, 1, BYTES);
  MUST(cuMemcpyHtoDAsync_v2(memory, x, BYTES, stream) == 0);
  memset(x, 2, BYTES);
  MUST(cuMemcpyDtoHAsync_v2(y, memory, BYTES, stream) == 0 && cuStreamSynchronize(stream) == 0);
  return y[BYTES - 1] != 1;
}

static int new_memory_is_nan(void)
{
  float *y = (float *)(void *)new_pinned(BYTES);
  MUST(cuMemcpyDtoHAsync_v2(y, memory, BYTES, stream) == 0 && cuStreamSynchronize(stream) == 0);
  return !isnan(y[0]) || !isnan(y[N - 1]);
}

static int copies_overlap(void)
{
  return both(cuMemcpyDtoDAsync_v2(memory + 4, memory, 8, stream));
}

static int no_context(void)
{
  CuPointer p;
  MUST(cuCtxSetCurrent(NULL) == 0);
  return cuMemAlloc_v2(&p, 4);
}

/* ---- launches ---- */

static int too_many_threads(void)
{
  return launch(add_one, 1, 1056, memory, memory);
}

static int no_blocks(void)
{
  return launch(add_one, 0, 32, memory, memory);
}

static int too_many_rows_of_blocks(void)
{
  void *arguments[] = {&memory, &memory};
  return cuLaunchKernel(add_one, 1, 65536, 1, 32, 1, 1, 0, stream, arguments, NULL);
}

static int too_much_shared(void)
{
  void *arguments[] = {&memory, &memory};
  return cuLaunchKernel(add_one, 1, 1, 1, 32, 1, 1, 50000, stream, arguments, NULL);
}

static int half_a_warp(void)
{
  return launch(add_one, 1, 48, memory, memory);
}

static int argument_missing(void)
{
  void *arguments[] = {&memory, NULL};
  return cuLaunchKernel(add_one, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL);
}

static int unloaded(void)
{
  MUST(cuModuleUnload(module) == 0);
  return launch(add_one, 1, 32, memory, memory);
}

static int unknown_kernel(void)
{
  CuFunction f;
  return cuModuleGetFunction(&f, module, "add_two");
}

static int damaged_image(void)
{
  char bytes[256] = "\177ELF and nothing else";
  CuModule m;
  return cuModuleLoadDataEx(&m, bytes, 0, NULL, NULL);
}

static int image_for_other(void)
{
  char *other;
  CuModule m;
  MUST(compile(kernels, "--gpu-architecture=sm_80", "--fmad=false", &other) == 0);
  return cuModuleLoadDataEx(&m, other, 0, NULL, NULL);
}

/* ---- capture ---- */

static void begin(void)
{
  MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == 0);
}

static int sync_in_capture(void)
{
  begin();
  return cuStreamSynchronize(stream);
}

static int capture_is_spoilt(void)
{
  CuGraph graph;
  begin();
  (void)cuStreamSynchronize(stream);
  return cuStreamEndCapture(stream, &graph);
}

static int alloc_in_capture(void)
{
  CuPointer p;
  begin();
  return cuMemAlloc_v2(&p, 4);
}

static int pageable_in_capture(void)
{
  char x[8] = "";
  begin();
  return cuMemcpyHtoDAsync_v2(memory, x, sizeof x, stream);
}

static int event_in_capture(void)
{
  CuEvent e;
  MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING) == 0);
  begin();
  MUST(cuEventRecord(e, stream) == 0);
  return cuEventSynchronize(e);
}

/* Captures an event, a fill and an event, and launches them. */
static CuResult time_fill(CuEvent *a, CuEvent *b, unsigned flags)
{
  CuGraph graph;
  CuGraphExec exec;
  MUST(cuEventCreate(a, flags) == 0 && cuEventCreate(b, flags) == 0);
  begin();
  MUST(cuEventRecordWithFlags(*a, stream, CU_EVENT_RECORD_EXTERNAL) == 0);
  MUST(cuMemsetD8Async(memory, 0, BYTES, stream) == 0);
  MUST(cuEventRecordWithFlags(*b, stream, CU_EVENT_RECORD_EXTERNAL) == 0);
  MUST(cuStreamEndCapture(stream, &graph) == 0);
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0) == 0);
  return cuGraphLaunch(exec, stream);
}

static int graph_is_timed(void)
{
  CuEvent a, b;
  float ms = -1;
  MUST(time_fill(&a, &b, CU_EVENT_DEFAULT) == 0);
  CHECK(cuEventElapsedTime(&ms, a, b) == CUDA_ERROR_NOT_READY);
  MUST(cuStreamSynchronize(stream) == 0 && cuEventElapsedTime(&ms, a, b) == 0);
  CHECK(ms >= 0 && ms < 60e3f);
  return 0;
}

static int event_is_not_timed(void)
{
  CuEvent a, b;
  float ms;
  MUST(time_fill(&a, &b, CU_EVENT_DISABLE_TIMING) == 0 && cuStreamSynchronize(stream) == 0);
  return cuEventElapsedTime(&ms, a, b);
}

static int external_without_capture(void)
{
  CuEvent e;
  MUST(cuEventCreate(&e, CU_EVENT_DEFAULT) == 0);
  return cuEventRecordWithFlags(e, stream, CU_EVENT_RECORD_EXTERNAL);
}

static void *alloc_elsewhere(void *context)
{
  CuPointer p;
  cuCtxSetCurrent(context);
  return cuMemAlloc_v2(&p, 4) ? context : NULL;
}

static int alloc_in_other_thread(void)
{
  CuContext context;
  CuGraph graph;
  pthread_t other;
  void *refused;
  MUST(cuDevicePrimaryCtxRetain(&context, 0) == 0);
  begin();
  MUST(pthread_create(&other, NULL, alloc_elsewhere, context) == 0);
  MUST(pthread_join(other, &refused) == 0);
  return refused ? 1 : cuStreamEndCapture(stream, &graph);
}

static int end_without_begin(void)
{
  CuGraph graph;
  return cuStreamEndCapture(stream, &graph);
}

static int default_stream(void)
{
  return cuMemsetD8Async(memory, 0, 4, NULL);
}

/* ---- NVRTC ---- */

static int contracted(void)
{
  return compile(kernels, "--gpu-architecture=sm_90", "--fmad=true", &image);
}

static int unknown_arch(void)
{
  return compile(kernels, "--gpu-architecture=sm_99", "--fmad=false", &image);
}

static int not_c(void)
{
  return compile("typedef float real;\n"
                 "#define DEVICE static __device__ __forceinline__\n"
                 "/* the code below is the same on every machine */\noops\n",
                 "--gpu-architecture=sm_90", "--fmad=false", &image);
}

static int foreign_text(void)
{
  return compile("__global__ void k(float *x) { *x = 1; }\n", "--gpu-architecture=sm_90",
                 "--fmad=false", &image);
}

static const Case cases[] = {
    {"plain step", plain_step, 0, NULL},
    {"graph", graph_replay, 0, NULL},
    {"events", event_order, 0, NULL},
    {"a stream waits for another", stream_waits, 0, NULL},
    {"all given back", all_given_back, 0, NULL},
    {"the host touches memory of the device", host_touches_device, FAULTS, "the host touches"},
    {"fill after free", used_after_free, MOCK_INVALID_VALUE, "that was freed"},
    {"kernel after free", kernel_after_free, MOCK_ILLEGAL_ADDRESS, "add_one: uses memory that was"},
    {"an error sticks", sticks, MOCK_ILLEGAL_ADDRESS, "freed"},
    {"freed twice", freed_twice, MOCK_INVALID_VALUE, "not allocated"},
    {"kernel runs past its memory", kernel_runs_past, FAULTS, "too_far: outside of its memory"},
    {"kernel writes after the end", kernel_writes_after_end, ABORTS, "written past its end"},
    {"copy too long", copy_too_long, MOCK_INVALID_VALUE, "4001 bytes at 0"},
    {"pointer of the host", pointer_of_the_host, MOCK_ILLEGAL_ADDRESS, "not memory of the device"},
    {"argument not aligned", argument_not_aligned, MOCK_MISALIGNED_ADDRESS, "argument 0"},
    {"pinned memory changes", pinned_changes_too_early, ABORTS, "changed before"},
    {"pageable memory may change", pageable_may_change, 0, NULL},
    {"new memory is no number", new_memory_is_nan, 0, NULL},
    {"copies overlap", copies_overlap, ABORTS, "overlap"},
    {"no context", no_context, MOCK_INVALID_CONTEXT, NULL},
    {"too many threads", too_many_threads, MOCK_INVALID_VALUE, "block 1056"},
    {"no blocks", no_blocks, MOCK_INVALID_VALUE, "grid 0"},
    {"grid along y", too_many_rows_of_blocks, MOCK_INVALID_VALUE, "grid 1 x 65536"},
    {"shared memory", too_much_shared, MOCK_INVALID_VALUE, "50000 bytes of shared"},
    {"half a warp", half_a_warp, ABORTS, "whole warps"},
    {"argument missing", argument_missing, MOCK_INVALID_VALUE, "no argument 1"},
    {"kernel of an unloaded module", unloaded, MOCK_INVALID_HANDLE, "no such function"},
    {"unknown kernel", unknown_kernel, MOCK_NOT_FOUND, NULL},
    {"damaged image", damaged_image, MOCK_INVALID_IMAGE, NULL},
    {"image for another architecture", image_for_other, CUDA_ERROR_NO_BINARY_FOR_GPU, NULL},
    {"wait while capturing", sync_in_capture, MOCK_CAPTURE_UNSUPPORTED, "cuStreamSynchronize"},
    {"spoilt capture", capture_is_spoilt, MOCK_CAPTURE_INVALIDATED, NULL},
    {"memory while capturing", alloc_in_capture, MOCK_CAPTURE_UNSUPPORTED, "cuMemAlloc"},
    {"memory in another thread meanwhile", alloc_in_other_thread, 0, NULL},
    {"pageable memory in a capture", pageable_in_capture, MOCK_CAPTURE_UNSUPPORTED, "pageable"},
    {"event of a capture", event_in_capture, MOCK_CAPTURED_EVENT, "cuEventSynchronize"},
    {"times of a graph", graph_is_timed, 0, NULL},
    {"event without timing", event_is_not_timed, MOCK_INVALID_HANDLE, "without timing"},
    {"external event", external_without_capture, MOCK_INVALID_VALUE, "without a capture"},
    {"end without begin", end_without_begin, MOCK_INVALID_VALUE, "does not capture"},
    {"default stream", default_stream, MOCK_INVALID_HANDLE, "no default stream"},
    {"contracted products", contracted, 5, NULL},
    {"unknown architecture", unknown_arch, 5, NULL},
    {"text that does not compile", not_c, 6, NULL},
    {"text without a prelude", foreign_text, 6, NULL},
};

int main(void)
{
  MUST(compile(kernels, "--gpu-architecture=sm_90", "--fmad=false", &image) == 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&cases[i], open_all);
  return check_done();
}
