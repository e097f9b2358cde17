/* Makes PyTorch see one GPU, for make_table.py. When preloaded, this library answers the calls of
 * the CUDA runtime that PyTorch makes before it records a fake tensor for backward. It cannot
 * compute anything. make_table.py builds it as libcuda.so.1 and restarts itself with it. */
#include <stddef.h>

#define NOTHING(name)                                                                              \
  int name(void)                                                                                   \
  {                                                                                                \
    return 0;                                                                                      \
  }

NOTHING(cudaGetDeviceProperties)
NOTHING(cudaGetLastError)
NOTHING(cudaDeviceSynchronize)
NOTHING(cudaStreamSynchronize)
NOTHING(cudaStreamQuery)
NOTHING(cudaStreamWaitEvent)
NOTHING(cudaEventCreateWithFlags)
NOTHING(cudaEventDestroy)
NOTHING(cudaEventRecord)
NOTHING(cudaEventQuery)

int cudaGetDeviceCount(int *count)
{
  *count = 1;
  return 0;
}

int cudaGetDevice(int *device)
{
  *device = 0;
  return 0;
}

int cudaSetDevice(int device)
{
  return device ? 101 : 0; /* cudaErrorInvalidDevice */
}

int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
  *least = *greatest = 0;
  return 0;
}

int cudaStreamIsCapturing(void *stream, int *status)
{
  (void)stream;
  *status = 0;
  return 0;
}

int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
  (void)flags, (void)priority;
  *stream = NULL;
  return 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
  (void)device;
  *flags = 0;
  *active = 1;
  return 0;
}
