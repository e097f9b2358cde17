/* The functions of libcudart that a program built by nvcc needs. The program's kernels register
 * here, and the driver's handle of each is found. The program's GPU code cannot run here.
 * $MOCK_CUDART_IMAGE replaces it: the image that the mock's NVRTC makes of the same job (ampc
 * --emit=cubin). */
#include "mock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KERNELS = 4096, INVALID_FUNCTION = 98, FILE_ERROR = 301 };

static struct {
  const void *stub; /* the function on the host side */
  const char *name;
} kernels[MOST_KERNELS];
static unsigned n_kernels;
static CuModule module;

EXPORT void **__cudaRegisterFatBinary(void *binary);
EXPORT void __cudaRegisterFatBinaryEnd(void **binary);
EXPORT void __cudaUnregisterFatBinary(void **binary);
EXPORT char __cudaInitModule(void **binary);
EXPORT void __cudaRegisterFunction(void **binary, const char *stub, char *function,
                                   const char *name, int limit, void *thread, void *block,
                                   void *block_dim, void *grid_dim, int *warp);
EXPORT int __cudaGetKernel(void **out, const void *stub);
EXPORT int __cudaPopCallConfiguration(void *grid, void *block, size_t *shared, void *stream);
EXPORT int __cudaLaunchKernel(void *kernel, ...);
EXPORT int cudaGetFuncBySymbol(CuFunction *out, const void *stub);

void **__cudaRegisterFatBinary(void *binary)
{
  static void *kept;
  kept = binary;
  return &kept;
}

void __cudaRegisterFatBinaryEnd(void **binary)
{
  (void)binary;
}

void __cudaUnregisterFatBinary(void **binary)
{
  (void)binary;
}

char __cudaInitModule(void **binary)
{
  (void)binary;
  return 0;
}

void __cudaRegisterFunction(void **binary, const char *stub, char *function, const char *name,
                            int limit, void *thread, void *block, void *block_dim, void *grid_dim,
                            int *warp)
{
  (void)binary, (void)function, (void)limit, (void)thread, (void)block, (void)block_dim;
  (void)grid_dim, (void)warp;
  if (n_kernels == MOST_KERNELS) mock_misuse("more than %d kernels", MOST_KERNELS);
  kernels[n_kernels].stub = stub;
  kernels[n_kernels++].name = name;
}

/* Fails. Emitted programs launch through the runtime, never with <<<>>>. */
static _Noreturn void launched(void)
{
  mock_misuse("a kernel was launched past the runtime");
}

int __cudaGetKernel(void **out, const void *stub)
{
  (void)out, (void)stub;
  launched();
}

int __cudaPopCallConfiguration(void *grid, void *block, size_t *shared, void *stream)
{
  (void)grid, (void)block, (void)shared, (void)stream;
  launched();
}

int __cudaLaunchKernel(void *kernel, ...)
{
  (void)kernel;
  launched();
}

static int load_image(void)
{
  const char *path = getenv("MOCK_CUDART_IMAGE");
  FILE *f = path ? fopen(path, "rb") : NULL;
  if (!f) return FILE_ERROR;
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  char *image = calloc(1, (size_t)size + 1);
  rewind(f);
  bool read = image && fread(image, 1, (size_t)size, f) == (size_t)size;
  fclose(f);
  int status = read ? cuModuleLoadDataEx(&module, image, 0, NULL, NULL) : FILE_ERROR;
  free(image);
  return status;
}

int cudaGetFuncBySymbol(CuFunction *out, const void *stub)
{
  int status = module ? 0 : load_image();
  for (unsigned i = 0; i < n_kernels && !status; i++)
    if (kernels[i].stub == stub) return cuModuleGetFunction(out, module, kernels[i].name);
  return status ? status : INVALID_FUNCTION;
}
