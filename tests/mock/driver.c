/* Start, device, context, errors, counters. The environment can make calls fail:
 *   MOCK_CUDA_INIT=n      cuInit returns n            MOCK_CUDA_DRIVER=n   version, 13990
 *   MOCK_CUDA_DEVICES=n   number of devices, 1        MOCK_CUDA_ARCH=n     capability, 90
 *   MOCK_CUDA_MODE=n      compute mode, 0             MOCK_CUDA_BUSY=1     another process uses it
 *   MOCK_CUDA_SHARED=1    the GPU has no memory of its own
 * ARCH, MODE and BUSY may be lists with a number for each device; the last number also applies to
 * all further devices. CUDA_VISIBLE_DEVICES lists the devices that programs find, in order, up to
 * the first invalid number. */
#include "mock.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 8 };
static struct {
  pthread_mutex_t lock;
  long count[COUNT_COUNT];
  bool started;
  CuResult stuck;
  int contexts[MOST_DEVICES]; /* retain counts of primary contexts; a context's handle is the
                               * address */
} mock;

static _Thread_local CuContext current;

static CuContext context_of(int device)
{
  return (CuContext)(void *)&mock.contexts[device];
}

/* Returns the device of a context; -1 without a context. */
static int device_of(CuContext context)
{
  for (int i = 0; i < MOST_DEVICES; i++)
    if (context == context_of(i)) return i;
  return -1;
}

/* ---- entry, counters, complaints ---- */

/* A block of the mock has one thread, so it has no tensor cores. */
__attribute__((constructor)) static void ask_for_f32(void)
{
  setenv("AMPC_ATTENTION_F32", "1", 0);
}

__attribute__((constructor)) static void make_lock(void)
{
  pthread_mutexattr_t how;
  pthread_mutexattr_init(&how);
  pthread_mutexattr_settype(&how, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&mock.lock, &how);
  pthread_mutexattr_destroy(&how);
}

void mock_leave(int *entered)
{
  (void)entered;
  pthread_mutex_unlock(&mock.lock);
}

CuResult mock_enter(Need need)
{
  pthread_mutex_lock(&mock.lock);
  if (need == NEEDS_NOTHING) return CUDA_SUCCESS;
  if (!mock.started) return MOCK_NOT_INITIALIZED;
  if (mock.stuck) return mock.stuck;
  if (need == NEEDS_CONTEXT && (!current || !mock.contexts[device_of(current)]))
    return MOCK_INVALID_CONTEXT;
  return CUDA_SUCCESS;
}

void mock_stick(CuResult error)
{
  if (!mock.stuck) mock.stuck = error;
}

static const char *const count_names[] = {
#define X(name) #name,
    COUNTS(X)
#undef X
};

void mock_add(Count which, long n)
{
  pthread_mutex_lock(&mock.lock);
  mock.count[which] += n;
  pthread_mutex_unlock(&mock.lock);
}

long mock_count(const char *name)
{
  for (int i = 0; i < COUNT_COUNT; i++)
    if (strcmp(name, count_names[i]) == 0) return mock.count[i];
  mock_misuse("no counter %s", name);
}

__attribute__((destructor)) static void report(void)
{
  const char *path = getenv("MOCK_CUDA_REPORT");
  FILE *f = path ? fopen(path, "w") : NULL;
  for (int i = 0; f && i < COUNT_COUNT; i++) fprintf(f, "%s %ld\n", count_names[i], mock.count[i]);
  if (f) fclose(f);
}

void mock_misuse(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  fputs("mock: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  abort();
}

int mock_refuse(int status, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  fprintf(stderr, "mock: status %d: ", status);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  return status;
}

long mock_setting(const char *name, long otherwise)
{
  const char *text = getenv(name);
  return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/* ---- devices: programs number the visible ones, the mock numbers all ---- */

/* Returns the number at position `at` of a list, or the last one. */
static long listed(const char *name, int at, long otherwise)
{
  const char *text = getenv(name);
  char *end;
  if (!text || !*text) return otherwise;
  long value = strtol(text, &end, 10);
  while (at-- > 0 && *end == ',') value = strtol(end + 1, &end, 10);
  return value;
}

static int seen_devices(int out[MOST_DEVICES])
{
  int all = (int)mock_setting("MOCK_CUDA_DEVICES", 1), n = 0;
  const char *text = getenv("CUDA_VISIBLE_DEVICES");
  while (!text && n < all && n < MOST_DEVICES) out[n] = n, n++;
  for (char *end; text && n < MOST_DEVICES; text = end + 1) {
    long device = strtol(text, &end, 10);
    if (end == text || device < 0 || device >= all) break;
    out[n++] = (int)device;
    if (*end != ',') break;
  }
  return n;
}

static int n_devices(void)
{
  return seen_devices((int[MOST_DEVICES]){0});
}

/* Returns the mock's number of a visible device; -1 if there is no such device. */
static int real_device(CuDevice device)
{
  int seen[MOST_DEVICES];
  return device >= 0 && device < seen_devices(seen) ? seen[device] : -1;
}

static int capability_of(int device)
{
  return (int)listed("MOCK_CUDA_ARCH", device, 90);
}

int mock_device(void)
{
  return current ? device_of(current) : 0;
}

int mock_capability(void)
{
  return capability_of(mock_device());
}

/* ---- start ---- */

CuResult cuInit(unsigned flags)
{
  MOCK_ENTER(NEEDS_NOTHING);
  if (flags) return mock_refuse(MOCK_INVALID_VALUE, "cuInit: flags must be 0");
  CuResult wanted = (CuResult)mock_setting("MOCK_CUDA_INIT", 0);
  if (wanted) return wanted;
  if (n_devices() == 0) return CUDA_ERROR_NO_DEVICE;
  mock.started = true;
  mock_watch_faults();
  return CUDA_SUCCESS;
}

CuResult cuDriverGetVersion(int *out)
{
  MOCK_ENTER(NEEDS_NOTHING); /* allowed before cuInit */
  *out = (int)mock_setting("MOCK_CUDA_DRIVER", 13990);
  return CUDA_SUCCESS;
}

static const struct {
  CuResult result;
  const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {MOCK_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {MOCK_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {MOCK_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {MOCK_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {MOCK_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {MOCK_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {MOCK_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {MOCK_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {MOCK_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {MOCK_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {MOCK_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {MOCK_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {MOCK_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {MOCK_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
};

static CuResult error_text(CuResult result, bool name, const char **out)
{
  *out = NULL;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].result == result) *out = name ? errors[i].name : errors[i].text;
  return *out ? CUDA_SUCCESS : MOCK_INVALID_VALUE;
}

CuResult cuGetErrorName(CuResult result, const char **out)
{
  return error_text(result, true, out);
}

CuResult cuGetErrorString(CuResult result, const char **out)
{
  return error_text(result, false, out);
}

/* ---- device and context ---- */

CuResult cuDeviceGetCount(int *out)
{
  MOCK_ENTER(NEEDS_DRIVER);
  *out = n_devices();
  return CUDA_SUCCESS;
}

CuResult cuDeviceGet(CuDevice *out, int ordinal)
{
  MOCK_ENTER(NEEDS_DRIVER);
  if (real_device(ordinal) < 0) return MOCK_INVALID_DEVICE;
  *out = ordinal;
  return CUDA_SUCCESS;
}

CuResult cuDeviceGetName(char *out, int size, CuDevice device)
{
  MOCK_ENTER(NEEDS_DRIVER);
  int real = real_device(device);
  if (real < 0) return MOCK_INVALID_DEVICE;
  snprintf(out, (size_t)size, real ? "Mock %d" : "Mock", real);
  return CUDA_SUCCESS;
}

CuResult cuDeviceGetAttribute(int *out, CuDeviceAttribute what, CuDevice device)
{
  MOCK_ENTER(NEEDS_DRIVER);
  int real = real_device(device);
  if (real < 0) return MOCK_INVALID_DEVICE;
  switch (what) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *out = capability_of(real) / 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *out = capability_of(real) % 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_INTEGRATED:
    *out = getenv("MOCK_CUDA_SHARED") != NULL;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
    *out = (int)listed("MOCK_CUDA_MODE", real, 0);
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    *out = what; /* an arbitrary number */
    return CUDA_SUCCESS;
  default:
    return mock_refuse(MOCK_INVALID_VALUE, "the mock has no device attribute %d", what);
  }
}

CuResult cuDevicePrimaryCtxRetain(CuContext *out, CuDevice device)
{
  MOCK_ENTER(NEEDS_DRIVER);
  int real = real_device(device);
  if (real < 0) return MOCK_INVALID_DEVICE;
  long mode = listed("MOCK_CUDA_MODE", real, 0);
  bool alone = mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS && listed("MOCK_CUDA_BUSY", real, 0);
  if (mode == CU_COMPUTEMODE_PROHIBITED || alone) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  mock.contexts[real]++;
  mock_add(COUNT_held, 1);
  *out = context_of(real);
  return CUDA_SUCCESS;
}

CuResult cuDevicePrimaryCtxRelease_v2(CuDevice device)
{
  MOCK_ENTER(NEEDS_NOTHING); /* even after a sticky error */
  int real = real_device(device);
  if (real < 0) return MOCK_INVALID_DEVICE;
  if (!mock.contexts[real]) return mock_refuse(MOCK_INVALID_CONTEXT, "released more than retained");
  mock.contexts[real]--;
  mock_add(COUNT_held, -1);
  return CUDA_SUCCESS;
}

CuResult cuCtxSetCurrent(CuContext context)
{
  MOCK_ENTER(NEEDS_DRIVER);
  if (context && device_of(context) < 0) return MOCK_INVALID_CONTEXT;
  current = context;
  return CUDA_SUCCESS;
}
