/* Device memory and pinned host memory.
 *
 * A device address lies in a range that cannot be accessed. Its bytes lie elsewhere between guard
 * pages, and work gets their address from mock_device_bytes. So host code that follows a device
 * pointer faults, and so does work that passes the end of its memory. Addresses are never reused,
 * so a use after free is detected. New memory is filled with 0xff: NaN in every float type.
 *   MOCK_CUDA_MEMORY=n    bytes of the device, 4 GB     MOCK_CUDA_OOM_AT=n   the n-th alloc fails
 */
#include "mock.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, ALIGN = 256, POISON = 0xff };

typedef struct Range {
  struct Range *next;
  uint64_t address;            /* the caller's; for pinned memory, the bytes' own */
  unsigned char *bytes, *area; /* area: a guard page, slack, the bytes, a guard page */
  size_t size, area_size;
  bool pinned, freed;
} Range;

static Range *ranges;
static size_t used;
static long allocations, pinnings;
const char *mock_running;
bool mock_repeating;

static size_t round_up(size_t n, size_t to)
{
  return (n + to - 1) / to * to;
}

/* Places the bytes so that they end at a guard page, except for at most ALIGN bytes. */
static bool open_area(Range *r)
{
  size_t inside = round_up(round_up(r->size, ALIGN), PAGE);
  r->area_size = inside + 2 * PAGE;
  void *area = mmap(NULL, r->area_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) return false;
  r->area = area;
  if (mprotect(r->area + PAGE, inside, PROT_READ | PROT_WRITE)) return false;
  r->bytes = r->area + PAGE + inside - round_up(r->size, ALIGN);
  memset(r->area + PAGE, POISON, inside);
  return true;
}

static Range *make_range(size_t bytes, bool pinned)
{
  Range *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  *r = (Range){.size = bytes, .pinned = pinned};
  void *address = NULL;
  if (open_area(r) && !pinned)
    address =
        mmap(NULL, r->area_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!r->bytes || address == MAP_FAILED) {
    free(r);
    return NULL;
  }
  r->address = pinned ? (uint64_t)r->bytes : (uint64_t)address + (uint64_t)(r->bytes - r->area);
  r->next = ranges;
  ranges = r;
  mock_add(COUNT_held, 1);
  return r;
}

/* Checks that the bytes between the end and the guard page are unchanged. */
static void retire(Range *r)
{
  for (size_t i = r->size; i < round_up(r->size, ALIGN); i++)
    if (r->bytes[i] != POISON) mock_misuse("memory of %zu bytes was written past its end", r->size);
  munmap(r->area, r->area_size);
  r->freed = true;
  mock_add(COUNT_held, -1);
}

static Range *range_of(uint64_t address)
{
  for (Range *r = ranges; r; r = r->next)
    if (address >= r->address && address - r->address <= r->size) return r;
  return NULL;
}

void *mock_device_bytes(uint64_t address, size_t bytes, const char *what)
{
  const Range *r = range_of(address);
  if (!r) {
    fprintf(stderr, "mock: %s: %#llx is not memory of the device\n", what,
            (unsigned long long)address);
    return NULL;
  }
  if (r->freed) {
    fprintf(stderr, "mock: %s: uses memory that was freed\n", what);
    return NULL;
  }
  if (bytes > r->size - (size_t)(address - r->address)) {
    fprintf(stderr, "mock: %s: %zu bytes at %llu of memory with %zu bytes\n", what, bytes,
            (unsigned long long)(address - r->address), r->size);
    return NULL;
  }
  return r->bytes + (address - r->address);
}

bool mock_is_pinned(const void *host, size_t bytes)
{
  const Range *r = range_of((uint64_t)host);
  if (r && r->pinned && r->freed) mock_misuse("pinned memory is used after it was freed");
  return r && r->pinned && bytes <= r->size - (size_t)((uint64_t)host - r->address);
}

/* ---- faults ---- */

static void put(const char *text)
{
  ssize_t n = write(STDERR_FILENO, text, strlen(text));
  (void)n;
}

static void explain(int number, siginfo_t *info, void *context)
{
  (void)context;
  uint64_t at = (uint64_t)info->si_addr;
  for (const Range *r = ranges; r; r = r->next) {
    bool device = !r->pinned && at - (r->address - (uint64_t)(r->bytes - r->area)) < r->area_size;
    bool area = at - (uint64_t)r->area < r->area_size;
    if (device) put("mock: the host touches memory of the device\n");
    if (!area) continue;
    put("mock: ");
    put(mock_running ? mock_running : "the host");
    put(r->freed ? ": memory that was freed\n" : ": outside of its memory\n");
  }
  signal(number, SIG_DFL); /* the instruction faults again and ends the process */
}

void mock_watch_faults(void)
{
  struct sigaction action = {.sa_sigaction = explain, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
}

/* ---- the driver's functions ---- */

static size_t capacity(void)
{
  return (size_t)mock_setting("MOCK_CUDA_MEMORY", 4l << 30);
}

CuResult cuMemGetInfo_v2(size_t *free, size_t *total)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  *total = capacity();
  *free = *total - used;
  return CUDA_SUCCESS;
}

CuResult cuMemAlloc_v2(CuPointer *out, size_t bytes)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  CuResult status = mock_opens("cuMemAlloc");
  if (status) return status;
  if (bytes == 0) return mock_refuse(MOCK_INVALID_VALUE, "cuMemAlloc of 0 bytes");
  bool planted = ++allocations == mock_setting("MOCK_CUDA_OOM_AT", 0);
  if (planted || bytes > capacity() - used) return CUDA_ERROR_OUT_OF_MEMORY;
  Range *r = make_range(bytes, false);
  if (!r) return CUDA_ERROR_OUT_OF_MEMORY;
  used += bytes;
  mock_add(COUNT_allocations, 1);
  *out = r->address;
  return CUDA_SUCCESS;
}

CuResult cuMemFree_v2(CuPointer memory)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  CuResult status = mock_opens("cuMemFree");
  if (status || !memory) return status;
  Range *r = range_of(memory);
  if (!r || r->pinned || r->freed || r->address != memory)
    return mock_refuse(MOCK_INVALID_VALUE, "cuMemFree of what is not allocated");
  mock_add(COUNT_implicit_syncs, 1);
  status = mock_drain();
  used -= r->size;
  retire(r);
  return status;
}

CuResult cuMemAllocHost_v2(void **out, size_t bytes)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  CuResult status = mock_opens("cuMemAllocHost");
  if (status) return status;
  if (bytes == 0) return mock_refuse(MOCK_INVALID_VALUE, "cuMemAllocHost of 0 bytes");
  if (++pinnings == mock_setting("MOCK_CUDA_PIN_AT", 0)) return CUDA_ERROR_OUT_OF_MEMORY;
  Range *r = make_range(bytes, true);
  if (!r) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = r->bytes;
  return CUDA_SUCCESS;
}

CuResult cuMemFreeHost(void *memory)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  CuResult status = mock_opens("cuMemFreeHost");
  if (status) return status;
  Range *r = range_of((uint64_t)memory);
  if (!r || !r->pinned || r->freed || r->bytes != memory)
    return mock_refuse(MOCK_INVALID_VALUE, "cuMemFreeHost of what is not allocated");
  mock_add(COUNT_implicit_syncs, 1);
  status = mock_drain();
  retire(r);
  return status;
}
