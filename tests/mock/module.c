/* Images, their kernels, launches. A launch calls the C twin of its kernel for each block of the
 * grid, in order. It is checked against the limits of all architectures since sm_75.
 *   MOCK_CUDA_STICKY_AT=n   the n-th kernel that runs causes an illegal address */
#include "mock.h"
#include "image.h"
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_THREADS = 1024, MAX_GRID_YZ = 65535, WARP = 32, SHARED = 48 << 10 };

struct CUfunc_st {
  const MockKernel *kernel;
  CuModule module;
};

struct CUmod_st {
  CuModule next;
  void *library;
  int file; /* kept open: the loader identifies libraries by their paths */
  unsigned n;
  struct CUfunc_st *functions;
};

static CuModule modules;
static long kernels_run;

/* ---- images ---- */

/* Returns the size of an image from its headers; the driver gets no size. 0: it is not an image. */
static size_t image_size(const void *image)
{
  Elf64_Ehdr head;
  memcpy(&head, image, sizeof head);
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_type != ET_DYN) return 0;
  if (head.e_machine != EM_X86_64 && head.e_machine != EM_AARCH64) return 0;
  return (size_t)head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
}

static bool load(CuModule m, const void *image, size_t size)
{
  m->file = memfd_create("image", MFD_CLOEXEC);
  if (m->file < 0 || write(m->file, image, size) != (ssize_t)size) return false;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", m->file);
  m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return m->library && dlsym(m->library, "mock_kernels") && dlsym(m->library, "mock_arch");
}

static void list_functions(CuModule m, const MockKernel *kernels)
{
  while (kernels[m->n].name) m->n++;
  m->functions = calloc(m->n + 1, sizeof *m->functions);
  if (!m->functions) mock_misuse("out of memory");
  for (unsigned i = 0; i < m->n; i++)
    m->functions[i] = (struct CUfunc_st){.kernel = &kernels[i], .module = m};
}

static void unload(CuModule m)
{
  if (m->library) dlclose(m->library);
  if (m->file >= 0) close(m->file);
  free(m->functions);
  free(m);
}

/* Checks the GPU: sm_XY runs on capability X.Z, Z >= Y; PTX on newer ones with a new driver. */
static CuResult check_arch(CuModule m)
{
  const int *arch = dlsym(m->library, "mock_arch");
  int device = mock_capability(), driver;
  cuDriverGetVersion(&driver);
  if (arch[1] && arch[2] > driver) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  bool fits = arch[0] <= device && (arch[1] || arch[0] / 10 == device / 10);
  return fits ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CuResult cuModuleLoadDataEx(CuModule *out, const void *image, unsigned n, CuJitOption *options,
                            void **values)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  CuResult status = mock_opens("cuModuleLoadData");
  if (status) return status;
  for (unsigned i = 0; i < n; i++) {
    if (options[i] != CU_JIT_ERROR_LOG_BUFFER && options[i] != CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      return mock_refuse(MOCK_INVALID_VALUE, "the mock has no option %d of images", options[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER && values[i]) *(char *)values[i] = 0;
  }
  const MockKernel *kernels = mock_ptx_kernels(image);
  size_t size = kernels ? 0 : image_size(image);
  if (!size && !kernels) return MOCK_INVALID_IMAGE;
  CuModule m = calloc(1, sizeof *m);
  if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
  m->file = -1;
  if (!kernels) status = load(m, image, size) ? check_arch(m) : MOCK_INVALID_IMAGE;
  if (status) {
    unload(m);
    return status;
  }
  list_functions(m, kernels ? kernels : dlsym(m->library, "mock_kernels"));
  m->next = modules;
  modules = m;
  mock_add(COUNT_modules, 1);
  mock_add(COUNT_held, 1);
  *out = m;
  return CUDA_SUCCESS;
}

CuResult cuModuleUnload(CuModule module)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  CuResult status = mock_opens("cuModuleUnload");
  if (status) return status;
  for (CuModule *at = &modules; *at; at = &(*at)->next)
    if (*at == module) {
      status = mock_drain();
      *at = module->next;
      unload(module);
      mock_add(COUNT_held, -1);
      return status;
    }
  return mock_refuse(MOCK_INVALID_HANDLE, "no such module");
}

CuResult cuModuleGetFunction(CuFunction *out, CuModule module, const char *name)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  for (unsigned i = 0; i < module->n; i++)
    if (strcmp(module->functions[i].kernel->name, name) == 0) {
      *out = &module->functions[i];
      return CUDA_SUCCESS;
    }
  return MOCK_NOT_FOUND;
}

static bool function_exists(CuFunction f)
{
  for (CuModule m = modules; m; m = m->next)
    if (f >= m->functions && f < m->functions + m->n) return true;
  return false;
}

/* ---- launches ---- */

static CuResult find_arguments(const Op *op, void **out)
{
  const MockKernel *k = op->as.launch.function->kernel;
  for (unsigned i = 0; i < k->n_arguments; i++) {
    uint64_t address = (uint64_t)op->as.launch.argument[i];
    if (k->align[i] == A_NUMBER) {
      out[i] = op->as.launch.argument[i];
      continue;
    }
    out[i] = address ? mock_device_bytes(address, 0, k->name) : NULL;
    if (address && !out[i]) return MOCK_ILLEGAL_ADDRESS;
    if (address % k->align[i]) {
      fprintf(stderr, "mock: %s: argument %u is not aligned to %d bytes\n", k->name, i,
              k->align[i]);
      return MOCK_MISALIGNED_ADDRESS;
    }
  }
  return CUDA_SUCCESS;
}

static CuResult run_kernel(const Op *op)
{
  void *arguments[MAX_ARGUMENTS];
  if (!function_exists(op->as.launch.function))
    mock_misuse("a kernel of a module that is unloaded");
  if (++kernels_run == mock_setting("MOCK_CUDA_STICKY_AT", 0)) return MOCK_ILLEGAL_ADDRESS;
  CuResult status = find_arguments(op, arguments);
  if (status) return status;
  mock_add(COUNT_kernels_run, 1);
  for (unsigned b = 0; b < op->as.launch.grid; b++)
    op->as.launch.function->kernel->run(arguments, b, op->as.launch.grid);
  return CUDA_SUCCESS;
}

static CuResult check_launch(CuFunction f, const unsigned grid[3], const unsigned block[3],
                             unsigned shared)
{
  const char *name = f->kernel->name;
  for (int i = 0; i < 3; i++)
    if (grid[i] == 0 || grid[i] > (i ? MAX_GRID_YZ : INT32_MAX))
      return mock_refuse(MOCK_INVALID_VALUE, "%s: grid %u x %u x %u", name, grid[0], grid[1],
                         grid[2]);
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  if (threads == 0 || threads > MAX_THREADS || block[2] > 64)
    return mock_refuse(MOCK_INVALID_VALUE, "%s: block %u x %u x %u", name, block[0], block[1],
                       block[2]);
  if (shared > SHARED)
    return mock_refuse(MOCK_INVALID_VALUE, "%s: %u bytes of shared memory, at most %d", name,
                       shared, SHARED);
  if (grid[1] * grid[2] * block[1] * block[2] != 1 || threads % WARP)
    mock_misuse("%s: our kernels walk along x, in whole warps", name);
  return CUDA_SUCCESS;
}

CuResult cuLaunchKernel(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CuStream stream, void **arguments, void **extra)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  if (!function_exists(function)) return mock_refuse(MOCK_INVALID_HANDLE, "no such function");
  const MockKernel *k = function->kernel;
  CuResult status = check_launch(function, (unsigned[]){grid_x, grid_y, grid_z},
                                 (unsigned[]){block_x, block_y, block_z}, shared);
  if (status) return status;
  if (extra || (k->n_arguments && !arguments))
    return mock_refuse(MOCK_INVALID_VALUE, "%s: how its arguments are given", k->name);
  if (k->n_arguments > MAX_ARGUMENTS) mock_misuse("%s: too many arguments for the mock", k->name);
  Op op = {.run = run_kernel,
           .label = k->name,
           .of_step = true,
           .as.launch = {.function = function, .grid = grid_x}};
  for (unsigned i = 0; i < k->n_arguments; i++) {
    if (!arguments[i]) return mock_refuse(MOCK_INVALID_VALUE, "%s: no argument %u", k->name, i);
    memcpy(&op.as.launch.argument[i], arguments[i], sizeof(void *));
  }
  mock_add(COUNT_launches, 1);
  return mock_queue(stream, &op);
}
