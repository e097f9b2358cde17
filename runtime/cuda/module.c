/* Kernels on the device: from images (the JIT), or linked into the program by nvcc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda_device.h"

enum {
  MOST_ARGUMENTS = 512, /* arguments of 8 bytes; every architecture accepts that many */
  LOG_ROOM = 512        /* bytes of the driver's message about an image */
};

/* Loads an image: a cubin, which the driver loads directly, or PTX, which it compiles. */
static ampc_status load_image(CudaDevice *d, uint32_t i)
{
  char log[LOG_ROOM] = "";
  CuJitOption options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  CuResult r =
      d->api->cuModuleLoadDataEx(&d->modules[i], d->program->images[i].bytes, 2, options, values);
  if (r == CUDA_SUCCESS) return AMPC_OK;
  d->modules[i] = NULL;
  if (r == CUDA_ERROR_NO_BINARY_FOR_GPU || r == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    return ampc_fail(AMPC_RUN_FAILED,
                     "%s (sm_%d) cannot run kernels that were compiled for %s: %s; compile with "
                     "--target=sm_%d%s",
                     d->device.name, d->capability, d->program->target,
                     r == CUDA_ERROR_NO_BINARY_FOR_GPU ? "they are for another architecture"
                                                       : "the driver is too old for this toolkit",
                     d->capability,
                     r == CUDA_ERROR_NO_BINARY_FOR_GPU ? "" : ", or install a newer driver");
  ampc_status status = cuda_status(d, r, "cuModuleLoadDataEx");
  if (!log[0]) return status;
  char text[2 * LOG_ROOM];
  snprintf(text, sizeof text, "%s: %s", ampc_last_error(), log);
  return ampc_fail_log(status, text);
}

/* Finds an image's kernels. Each image has some of the program's kernels, in their order. */
static ampc_status find_in_image(CudaDevice *d, uint32_t i)
{
  const ampc_program *p = d->program;
  const ampc_image *image = &p->images[i];
  for (uint32_t k = image->first; k < image->first + image->count; k++) {
    if (k >= p->n_kernels) return ampc_fail(AMPC_RUN_FAILED, "broken plan: no kernel %u", k);
    CuResult r = d->api->cuModuleGetFunction(&d->functions[k], d->modules[i], p->kernels[k].name);
    if (r != CUDA_SUCCESS)
      return ampc_fail(AMPC_RUN_FAILED, "kernel %s is not among the compiled ones (error %d)",
                       p->kernels[k].name, r);
  }
  return AMPC_OK;
}

/* Finds linked kernels. nvcc registers them with cudart, which knows the driver's handles. */
static ampc_status find_linked(CudaDevice *d)
{
  const ampc_program *p = d->program;
  for (uint32_t k = 0; k < p->n_kernels; k++) {
    void *found = NULL, *stub = NULL;
    memcpy(&stub, &p->kernels[k].function, sizeof stub); /* ISO C has no such cast */
    int r = p->find_kernel(&found, stub);
    if (r != 0 || !found)
      return ampc_fail(AMPC_RUN_FAILED,
                       "%s (sm_%d) cannot run kernel %s, which was compiled for %s (CUDA runtime "
                       "error %d); compile with --target=sm_%d, or install a newer driver",
                       d->device.name, d->capability, p->kernels[k].name, p->target, r,
                       d->capability);
    d->functions[k] = found;
  }
  return AMPC_OK;
}

/* Checks that the images contain all kernels. */
static ampc_status check_complete(const CudaDevice *d)
{
  const ampc_program *p = d->program;
  for (uint32_t k = 0; k < p->n_kernels; k++)
    if (!d->functions[k])
      return ampc_fail(AMPC_RUN_FAILED, "kernel %s is not loaded", p->kernels[k].name);
  return AMPC_OK;
}

ampc_status modules_open(CudaDevice *d)
{
  const ampc_program *p = d->program;
  d->modules = calloc(p->n_images + 1, sizeof *d->modules);
  d->functions = calloc(p->n_kernels + 1, sizeof *d->functions);
  if (!d->modules || !d->functions) return ampc_fail(AMPC_RUN_FAILED, "out of memory for kernels");
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_images && !status; i++) {
    status = load_image(d, i);
    if (!status) status = find_in_image(d, i);
  }
  if (!status && p->find_kernel) status = find_linked(d);
  return status ? status : check_complete(d);
}

void modules_close(CudaDevice *d)
{
  for (int i = 0; i < OWN_COUNT; i++)
    if (d->own[i]) d->api->cuModuleUnload(d->own[i]);
  for (uint32_t i = 0; d->modules && i < d->program->n_images; i++)
    if (d->modules[i]) d->api->cuModuleUnload(d->modules[i]);
  free(d->modules);
  free(d->functions);
}

/* Launches a kernel. `args` are the addresses of operands; the driver needs pointers to these. */
ampc_status cuda_launch(Device *device, const ampc_kernel *kernel, uint32_t grid, uint32_t block,
                        void *const *args)
{
  CudaDevice *d = cuda_of(device);
  void *pointers[MOST_ARGUMENTS];
  if (kernel->n_args > MOST_ARGUMENTS)
    return ampc_fail(AMPC_RUN_FAILED, "kernel %s has %u arguments, CUDA expects %d", kernel->name,
                     kernel->n_args, MOST_ARGUMENTS);
  ampc_status entered = gpu_enter(d);
  if (entered) return entered;
  for (uint32_t i = 0; i < kernel->n_args; i++) pointers[i] = (void *)(uintptr_t)&args[i];
  CuFunction f = d->functions[kernel - d->program->kernels];
  CuResult r = d->api->cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, d->stream, pointers, NULL);
  if (r == CUDA_SUCCESS) return AMPC_OK;
  ampc_status status = cuda_status(d, r, "cuLaunchKernel");
  return ampc_fail(status, "kernel %s: %s", kernel->name, ampc_last_error());
}

/* Launches a kernel of our own. Its text is compiled at the first use: few programs need one. */
ampc_status cuda_run_own(CudaDevice *d, OwnText text, const char *name, int64_t grid,
                         void **arguments)
{
  static const char *const texts[] = {cuda_relu_ptx, cuda_product_ptx, cuda_kept_ptx, cuda_add_ptx};
  CuFunction function;
  ampc_status status = AMPC_OK;
  if (!d->own[text])
    status = CUDA(d, cuModuleLoadDataEx(&d->own[text], texts[text], 0, NULL, NULL));
  if (!status) status = CUDA(d, cuModuleGetFunction(&function, d->own[text], name));
  if (status) return status;
  return CUDA(d, cuLaunchKernel(function, (unsigned)grid, 1, 1, OWN_BLOCK, 1, 1, 0, d->stream,
                                arguments, NULL));
}
