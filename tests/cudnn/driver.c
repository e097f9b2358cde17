/* The functions of NVIDIA's driver that cuDNN calls while it finishes a plan that is compiled. The
 * driver starts, loads code and unloads code. All other functions exist and fail. */
#include <stddef.h>

enum { NO_DEVICE = 100, VERSION = 13000 };
static int code;

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
  (void)flags;
  return 0;
}

int cuDriverGetVersion(int *out);
int cuDriverGetVersion(int *out)
{
  *out = VERSION;
  return 0;
}

int cuLibraryLoadData(void **out, const void *bytes);
int cuLibraryLoadData(void **out, const void *bytes)
{
  (void)bytes;
  *out = &code;
  return 0;
}

int cuLibraryGetKernel(void **out, void *library, const char *name);
int cuLibraryGetKernel(void **out, void *library, const char *name)
{
  (void)library, (void)name;
  *out = &code;
  return 0;
}

int cuLibraryUnload(void *library);
int cuLibraryUnload(void *library)
{
  (void)library;
  return 0;
}

#define FAILS(name)                                                                                \
  int name(void);                                                                                  \
  int name(void)                                                                                   \
  {                                                                                                \
    return NO_DEVICE;                                                                              \
  }
FAILS(cuCtxGetCurrent)
FAILS(cuCtxGetDevice)
FAILS(cuCtxGetLimit)
FAILS(cuCtxPopCurrent)
FAILS(cuCtxPushCurrent)
FAILS(cuDeviceGet)
FAILS(cuDeviceGetAttribute)
FAILS(cuDeviceGetCount)
FAILS(cuDevicePrimaryCtxRetain)
FAILS(cuFuncGetAttribute)
FAILS(cuGetErrorName)
FAILS(cuGetErrorString)
FAILS(cuGetExportTable)
FAILS(cuGetProcAddress)
FAILS(cuGetProcAddress_v2)
FAILS(cuKernelGetAttribute)
FAILS(cuKernelGetFunction)
FAILS(cuKernelSetAttribute)
FAILS(cuLaunchCooperativeKernel)
FAILS(cuLaunchKernel)
FAILS(cuLaunchKernelEx)
FAILS(cuLibraryLoadFromFile)
FAILS(cuLinkAddData)
FAILS(cuLinkComplete)
FAILS(cuLinkCreate)
FAILS(cuLinkDestroy)
FAILS(cuMemcpyDtoDAsync_v2)
FAILS(cuMemsetD32Async)
FAILS(cuMemsetD8Async)
FAILS(cuModuleGetFunction)
FAILS(cuModuleLoadData)
FAILS(cuModuleLoadDataEx)
FAILS(cuModuleUnload)
FAILS(cuOccupancyMaxActiveBlocksPerMultiprocessor)
FAILS(cuOccupancyMaxActiveClusters)
FAILS(cuOccupancyMaxPotentialClusterSize)
FAILS(cuStreamGetCaptureInfo)
FAILS(cuStreamGetCtx)
FAILS(cuTensorMapEncodeIm2col)
FAILS(cuTensorMapEncodeTiled)
