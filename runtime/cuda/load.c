/* Loads the libraries, checks the driver's version and starts it; see load.h. */
#include "load.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { OLDEST_DRIVER = 12000 }; /* CUDA 12.0 */
enum { DNN_VERSION = 9, OLDEST_DNN = 90000, NEXT_DNN = 100000 };
enum { NCCL_VERSION = 2, OLDEST_NCCL = 21800 }; /* 2.18: calls that do not block, in graphs, too */

/* The result of the first attempt to load a library. */
typedef struct Library {
  pthread_once_t once;
  bool loaded;
  char why[AMPC_WHY_ROOM]; /* why it is not loaded */
} Library;

static Library driver = {.once = PTHREAD_ONCE_INIT}, blas = {.once = PTHREAD_ONCE_INIT};
static Library dnn = {.once = PTHREAD_ONCE_INIT}, nccl = {.once = PTHREAD_ONCE_INIT};
static CudaApi api;
static DnnApi dnn_api;
static NcclApi nccl_api;

#define CUDA_API(result, name, parameters) {#name, offsetof(CudaApi, name)},
static const ampc_symbol driver_symbols[] = {
#include "driver.def"
};
#define CUDA_API(result, name, parameters) {#name, offsetof(CudaApi, name)},
static const ampc_symbol blas_symbols[] = {
#include "blas.def"
};
#define CUDA_API(result, name, parameters) {#name, offsetof(DnnApi, name)},
static const ampc_symbol dnn_symbols[] = {
#include "cudnn.def"
};
#define CUDA_API(result, name, parameters) {#name, offsetof(NcclApi, name)},
static const ampc_symbol nccl_symbols[] = {
#include "nccl.def"
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Stores the version that the driver supports as the limit for toolkit libraries. */
static bool start_driver(char *why)
{
  int version = 0;
  CuResult r = api.cuDriverGetVersion(&version);
  ampc_toolkit_limit(version);
  if (r == CUDA_SUCCESS && version < OLDEST_DRIVER) {
    snprintf(why, AMPC_WHY_ROOM,
             "the NVIDIA driver is too old: it supports CUDA %d.%d, ampc needs 12.0 (driver 525; "
             "on a Jetson, JetPack 6) or newer",
             version / 1000, version % 1000 / 10);
    return false;
  }
  if (r == CUDA_SUCCESS) r = api.cuInit(0);
  if (r == CUDA_SUCCESS) return true;
  const char *text = NULL;
  api.cuGetErrorString(r, &text);
  if (r == CUDA_ERROR_STUB_LIBRARY) {
    snprintf(why, AMPC_WHY_ROOM,
             "the libcuda.so.1 that was found is the toolkit's stub: remove its folder from "
             "LD_LIBRARY_PATH and install the NVIDIA driver");
  } else if (r == CUDA_ERROR_NO_DEVICE) {
    snprintf(why, AMPC_WHY_ROOM,
             "the NVIDIA driver sees no GPU: `nvidia-smi -L` should list one, and "
             "CUDA_VISIBLE_DEVICES should not hide it");
  } else {
    snprintf(why, AMPC_WHY_ROOM, "the NVIDIA driver does not start: %s (%d); see nvidia-smi",
             text ? text : "unknown error", r);
  }
  return false;
}

static bool open_driver(char *why)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(
        why, AMPC_WHY_ROOM,
        "no NVIDIA driver: the loader finds no libcuda.so.1; install the driver (525 or newer; "
        "a Jetson has it from JetPack 6), or run on the cpu");
    return false;
  }
  const char *lacks = ampc_bind(library, driver_symbols, COUNT(driver_symbols), &api);
  if (!lacks) return start_driver(why);
  snprintf(why, AMPC_WHY_ROOM,
           "the NVIDIA driver is too old: it has no %s; ampc needs driver 525 or newer", lacks);
  return false;
}

static void load_driver(void)
{
  driver.loaded = open_driver(driver.why);
}

static void load_blas(void)
{
  const ampc_library l = {"libcublasLt", blas_symbols, COUNT(blas_symbols), 0, 0, NULL};
  blas.loaded = ampc_toolkit_open(&l, &api, blas.why);
}

/* Loads cuDNN. Each release of cuDNN 9 adds functions, so version 9 alone does not suffice. */
static void load_dnn(void)
{
  static const char install[] =
      "cuDNN 9 (a package of its own; as a Python wheel nvidia-cudnn-cu12 "
      "or nvidia-cudnn-cu13)";
  const ampc_library l = {"libcudnn",  dnn_symbols, COUNT(dnn_symbols),
                          DNN_VERSION, DNN_VERSION, install};
  if (!ampc_library_open(&l, &dnn_api, dnn.why)) return;
  size_t version = dnn_api.cudnnGetVersion();
  dnn.loaded = version >= OLDEST_DNN && version < NEXT_DNN;
  if (!dnn.loaded)
    snprintf(dnn.why, sizeof dnn.why,
             "libcudnn.so.9 is cuDNN %zu: version 9 (90000 or more) is needed", version);
}

static void load_nccl(void)
{
  static const char install[] = "NCCL 2.18 or newer (the package libnccl2; as a Python wheel "
                                "nvidia-nccl-cu12 or nvidia-nccl-cu13)";
  const ampc_library l = {"libnccl",    nccl_symbols, COUNT(nccl_symbols),
                          NCCL_VERSION, NCCL_VERSION, install};
  int version = 0;
  if (!ampc_library_open(&l, &nccl_api, nccl.why)) return;
  nccl.loaded = nccl_api.ncclGetVersion(&version) == ncclSuccess && version >= OLDEST_NCCL;
  if (!nccl.loaded)
    snprintf(nccl.why, sizeof nccl.why, "libnccl.so.2 is NCCL %d.%d.%d: install %s",
             version / 10000, version / 100 % 100, version % 100, install);
}

static bool load(Library *l, void (*first)(void), char *why)
{
  pthread_once(&l->once, first);
  if (!l->loaded) snprintf(why, AMPC_WHY_ROOM, "%s", l->why);
  return l->loaded;
}

bool cuda_load_driver(const CudaApi **out, char why[AMPC_WHY_ROOM])
{
  *out = load(&driver, load_driver, why) ? &api : NULL;
  return *out != NULL;
}

bool cuda_load_blas(const CudaApi **out, char why[AMPC_WHY_ROOM])
{
  *out = load(&blas, load_blas, why) ? &api : NULL;
  return *out != NULL;
}

bool cuda_load_dnn(const DnnApi **out, char why[AMPC_WHY_ROOM])
{
  *out = load(&dnn, load_dnn, why) ? &dnn_api : NULL;
  return *out != NULL;
}

bool cuda_load_nccl(const NcclApi **out, char why[AMPC_WHY_ROOM])
{
  *out = load(&nccl, load_nccl, why) ? &nccl_api : NULL;
  return *out != NULL;
}
