/* The CUDA device: the table of functions, memory, and functions of a single driver call. */
#include <stdlib.h>
#include "cuda_device.h"

/* Allocates memory and zeroes it in stream order: the host does not wait, later calls follow. */
static ampc_status cuda_alloc(Device *device, int64_t bytes, void **out)
{
  CudaDevice *d = cuda_of(device);
  CuPointer memory = 0;
  *out = NULL;
  ampc_status status = gpu_enter(d);
  if (status) return status;
  setup_lock();
  CuResult r = d->api->cuMemAlloc_v2(&memory, (size_t)bytes);
  setup_unlock();
  if (r != CUDA_SUCCESS) return cuda_no_memory(d, r, "cuMemAlloc", bytes);
  *out = (void *)(uintptr_t)memory;
  return CUDA(d, cuMemsetD8Async(memory, 0, (size_t)bytes, d->stream));
}

/* Frees memory. If the context failed, or the GPU waits for a rank that is missing, the memory is
 * freed with the context: cuMemFree waits for the GPU. */
static void cuda_release(Device *device, void *memory)
{
  CudaDevice *d = cuda_of(device);
  if (d->nccl && d->nccl->failed) return;
  setup_lock();
  if (d->api->cuCtxSetCurrent(d->context) == CUDA_SUCCESS)
    d->api->cuMemFree_v2(cuda_address(memory));
  setup_unlock();
}

static ampc_status cuda_copy(Device *device, void *to, const void *from, int64_t bytes)
{
  CudaDevice *d = cuda_of(device);
  if (bytes == 0) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  return status ? status
                : CUDA(d, cuMemcpyDtoDAsync_v2(cuda_address(to), cuda_address(from), (size_t)bytes,
                                               d->stream));
}

static ampc_status cuda_fill(Device *device, void *to, uint8_t value, int64_t bytes)
{
  CudaDevice *d = cuda_of(device);
  if (bytes == 0) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  return status ? status
                : CUDA(d, cuMemsetD8Async(cuda_address(to), value, (size_t)bytes, d->stream));
}

int64_t cuda_bytes_beside(const ampc_program *p, int64_t members)
{
  return recordings_bytes(p, members) + members * device_step(p, AMPC_INPUT); /* a second half */
}

/* Returns the bytes outside the spaces. Memory that libraries allocate in the context is not
 * counted, because the driver only reports the use of the whole GPU. */
static int64_t cuda_library_bytes(const Device *device)
{
  const CudaDevice *d = (const CudaDevice *)device;
  return cuda_bytes_beside(d->program, d->members) + dnn_scratch_bytes(d);
}

/* Closes the device. If the context has failed, the driver refuses these calls and destroys it with
 * its last user. The host's memory is freed nevertheless; the message is kept. */
static void cuda_close(Device *device)
{
  CudaDevice *d = cuda_of(device);
  setup_lock();
  if (d->context) {
    d->api->cuCtxSetCurrent(d->context);
    recordings_close(d);
    nccl_close(d);
    dnn_choices_close(d);
    products_close(d);
    modules_close(d);
    staging_close(d);
    gpu_close(d);
  }
  setup_unlock();
  free(d);
}

static const DeviceOps cuda_ops = {
    .alloc = cuda_alloc,
    .release = cuda_release,
    .turn_input = cuda_turn_input,
    .bring = cuda_bring,
    .bring_on = cuda_bring_on,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .launch = cuda_launch,
    .gemm = cuda_gemm,
    .conv = cuda_conv,
    .launch_by_library = cuda_launch_by_library,
    .add = cuda_add,
    .round = cuda_round,
    .reduce = cuda_reduce,
    .swap = cuda_swap,
    .gather = cuda_gather,
    .aside = cuda_aside,
    .join = cuda_join,
    .prepare_conv = cuda_prepare_conv,
    .prepare_launch = cuda_prepare_launch,
    .prepare_gemm = cuda_prepare_gemm,
    .step = cuda_step,
    .rehearse = cuda_rehearse,
    .look = cuda_look,
    .looked = cuda_looked,
    .library_bytes = cuda_library_bytes,
    .mark = cuda_mark,
    .wait = cuda_wait,
    .close = cuda_close,
};

ampc_status cuda_device_open(const ampc_program *p, int64_t members, int gpu, Device **out)
{
  *out = NULL;
  CudaDevice *d = calloc(1, sizeof *d);
  if (!d) return ampc_fail(AMPC_RUN_FAILED, "out of memory opening the CUDA device");
  d->device.ops = &cuda_ops;
  d->device.inputs = 2;
  d->program = p;
  d->members = members;
  setup_lock();
  ampc_status status = gpu_open(d, gpu);
  if (!status) status = modules_open(d);
  if (!status) status = staging_open(d);
  if (!status) status = products_open(d);
  if (!status) status = recordings_open(d);
  setup_unlock();
  if (status) {
    cuda_close(&d->device);
  } else {
    *out = &d->device;
  }
  return status;
}
