/* Batches on their way to the mock's GPU: the order of copies on the stream of batches, on that of
 * steps, and on the caller's. */
#include "ampc_rt.h"
#include "cases.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/device.h"
#include <stdlib.h>
#include <string.h>

static ampc_block block = {.kind = AMPC_INFER, .name = "f", .batch = 1, .n_variants = 1};
static ampc_program program = {
    .name = "test",
    .source = "test.amp",
    .target = "sm_90",
    .precision = "f32",
    .space_bytes = {[AMPC_STATE] = 4096, [AMPC_INPUT] = 1024, [AMPC_WORK] = 1024},
    .blocks = &block,
    .n_blocks = 1};
static Device *device;

static void open_device(void)
{
  if (cuda_device_open(&program, 1, ANY_GPU, &device)) fprintf(stderr, "%s\n", ampc_last_error());
  MUST(device);
}

/* Checks that memory is zeroed before batches arrive. The fill is on the stream of the steps.
 * Batches come on another stream, as early as events allow. */
static int first_batches(void)
{
  enum { BYTES = 1024 };
  char sent[BYTES], got[BYTES];
  void *input;
  int half;
  setenv("MOCK_CUDA_EAGER", "2", 1);
  open_device();
  MUST(device->ops->alloc(device, 2 * BYTES, &input) == AMPC_OK);
  for (int i = 0; i < 3; i++) {
    memset(sent, 'a' + i, BYTES);
    MUST(device->ops->turn_input(device, &half) == AMPC_OK);
    char *to = (char *)input + half * BYTES;
    MUST(device->ops->bring(device, to, sent, BYTES) == AMPC_OK);
    MUST(device->ops->copy_out(device, got, to, BYTES) == AMPC_OK);
    CHECK_MSG(memcmp(sent, got, BYTES) == 0, "batch %d begins with %d", i, got[0]);
  }
  device->ops->release(device, input);
  device->ops->close(device);
  return check_failures;
}

/* Checks samples in the GPU's memory: their copy follows the caller's work before it, and precedes
 * the caller's work after it. */
static int batch_on_the_gpu(void)
{
  enum { BYTES = 1024, BATCHES = 3 };
  char sent[BATCHES][BYTES], nonsense[BYTES], got[BYTES];
  void *input, *samples;
  int half;
  open_device();
  const CudaApi *api = ((CudaDevice *)device)->api;
  CuStream stream;
  memset(nonsense, 255, BYTES);
  MUST(api->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  MUST(device->ops->alloc(device, 2 * BYTES, &input) == AMPC_OK);
  MUST(device->ops->alloc(device, BYTES, &samples) == AMPC_OK);
  for (int i = 0; i < BATCHES; i++) {
    CuPointer at = cuda_address(samples);
    memset(sent[i], 'a' + i, BYTES);
    MUST(device->ops->turn_input(device, &half) == AMPC_OK);
    char *to = (char *)input + half * BYTES;
    MUST(api->cuMemcpyHtoDAsync_v2(at, sent[i], BYTES, stream) == CUDA_SUCCESS);
    MUST(device->ops->bring_on(device, to, samples, BYTES, stream) == AMPC_OK);
    MUST(api->cuMemcpyHtoDAsync_v2(at, nonsense, BYTES, stream) == CUDA_SUCCESS);
    if (i % 2) MUST(api->cuStreamSynchronize(stream) == CUDA_SUCCESS);
    MUST(device->ops->copy_out(device, got, to, BYTES) == AMPC_OK);
    CHECK_MSG(memcmp(sent[i], got, BYTES) == 0, "batch %d begins with %d", i, got[0]);
  }
  MUST(api->cuStreamSynchronize(stream) == CUDA_SUCCESS);
  MUST(api->cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
  device->ops->release(device, input);
  device->ops->release(device, samples);
  device->ops->close(device);
  CHECK(mock_count("held") == 0);
  return check_failures;
}

static const Case cases[] = {
    {"the first batches", first_batches, 0, NULL},
    {"a batch on the GPU", batch_on_the_gpu, 0, NULL},
};

static void nothing(void)
{
}

int main(void)
{
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&cases[i], nothing);
  return check_done();
}
