/* dlopen and dlsym; see load.h. */
#include "load.h"
#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* CUDA 12 has all that is called, and its drivers run what its libraries make. */
enum { NEWEST = 13, OLDEST = 12, OLDEST_DRIVER = 12000 };

typedef enum Library { LIBRARY_driver, LIBRARY_nvrtc, LIBRARY_blas, LIBRARY_COUNT } Library;
typedef enum State { STATE_new, STATE_loaded, STATE_missing } State;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CudaLoaded loaded;
static struct {
  State state;
  char why[CUDA_ERROR_ROOM];
} libraries[LIBRARY_COUNT];

static const struct {
  Library library;
  const char *name;
  size_t offset; /* of the pointer in CudaApi */
} symbols[] = {
#define CUDA_API(library, result, name, parameters)                                                \
  {LIBRARY_##library, #name, offsetof(CudaApi, name)},
#include "cuda_api.def"
};

/* NULL, or the name of a function that the library lacks. */
static const char *bind(Library library, void *handle)
{
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    if (symbols[i].library != library) continue;
    void *found = dlsym(handle, symbols[i].name);
    if (!found) return symbols[i].name;
    memcpy((char *)&loaded.api + symbols[i].offset, &found, sizeof found);
  }
  return NULL;
}

/* By its name, wherever the loader looks; else where toolkits are installed. */
static void *open_version(const char *stem, int version)
{
  char name[64], pattern[128];
  snprintf(name, sizeof name, "%s.so.%d", stem, version);
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle) return handle;
  glob_t found;
  snprintf(pattern, sizeof pattern, "/usr/local/cuda*/lib64/%s", name);
  if (glob(pattern, 0, NULL, &found) != 0) return NULL;
  for (size_t i = found.gl_pathc; i > 0 && !handle; i--)
    handle = dlopen(found.gl_pathv[i - 1], RTLD_NOW | RTLD_LOCAL);
  globfree(&found);
  return handle;
}

/* A library for a newer CUDA than the driver's makes what the driver cannot run. */
static int open_toolkit_library(Library library, const char *stem, char *why)
{
  int newest = loaded.driver ? loaded.driver / 1000 : NEWEST;
  if (newest > NEWEST) newest = NEWEST;
  for (int version = newest; version >= OLDEST; version--) {
    void *handle = open_version(stem, version);
    if (!handle) continue;
    const char *lacks = bind(library, handle);
    if (!lacks) return version;
    snprintf(why, CUDA_ERROR_ROOM, "%s.so.%d has no function %s: it is damaged or too old", stem,
             version, lacks);
    dlclose(handle);
    return 0;
  }
  if (newest < NEWEST) {
    snprintf(why, CUDA_ERROR_ROOM,
             "%s.so.%d is not on this machine (the driver supports CUDA %d.%d): install that "
             "version of the CUDA toolkit or a newer driver",
             stem, newest, loaded.driver / 1000, loaded.driver % 1000 / 10);
  } else {
    snprintf(why, CUDA_ERROR_ROOM,
             "%s.so.%d or .%d is not on this machine: install the CUDA toolkit (12 or 13), or put "
             "the folder of the library into LD_LIBRARY_PATH",
             stem, NEWEST, OLDEST);
  }
  return 0;
}

static bool check_driver(char *why)
{
  const CudaApi *api = &loaded.api;
  CuResult r = api->cuDriverGetVersion(&loaded.driver);
  if (r == CUDA_SUCCESS && loaded.driver < OLDEST_DRIVER) {
    snprintf(why, CUDA_ERROR_ROOM,
             "the NVIDIA driver is too old: it supports CUDA %d.%d, ampc needs 12.0 (driver 525) "
             "or newer",
             loaded.driver / 1000, loaded.driver % 1000 / 10);
    return false;
  }
  if (r == CUDA_SUCCESS) r = api->cuInit(0);
  if (r == CUDA_SUCCESS) return true;
  const char *text = NULL;
  api->cuGetErrorString(r, &text);
  if (r == CUDA_ERROR_STUB_LIBRARY) {
    snprintf(why, CUDA_ERROR_ROOM,
             "the libcuda.so.1 that was found is the toolkit's stub: take its folder out of "
             "LD_LIBRARY_PATH and install the NVIDIA driver");
  } else if (r == CUDA_ERROR_NO_DEVICE) {
    snprintf(why, CUDA_ERROR_ROOM,
             "the NVIDIA driver sees no GPU: `nvidia-smi -L` should list one, and "
             "CUDA_VISIBLE_DEVICES should not hide it");
  } else {
    snprintf(why, CUDA_ERROR_ROOM, "the NVIDIA driver does not start: %s (%d); see nvidia-smi",
             text ? text : "unknown error", r);
  }
  return false;
}

static bool open_driver(char *why)
{
  void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    snprintf(why, CUDA_ERROR_ROOM,
             "no NVIDIA driver: libcuda.so.1 is not on this machine; install the driver (525 or "
             "newer), or run on the cpu");
    return false;
  }
  const char *lacks = bind(LIBRARY_driver, handle);
  if (!lacks) return check_driver(why);
  snprintf(why, CUDA_ERROR_ROOM,
           "the NVIDIA driver is too old: it has no %s; ampc needs driver 525 or newer", lacks);
  return false;
}

static bool open_library(Library library, char *why)
{
  switch (library) {
  case LIBRARY_driver:
    return open_driver(why);
  case LIBRARY_nvrtc:
    loaded.nvrtc = open_toolkit_library(library, "libnvrtc", why);
    return loaded.nvrtc != 0;
  default:
    loaded.blas = open_toolkit_library(library, "libcublasLt", why);
    return loaded.blas != 0;
  }
}

static bool load(Library library, const CudaLoaded **out, char why[CUDA_ERROR_ROOM])
{
  pthread_mutex_lock(&lock);
  if (libraries[library].state == STATE_new) {
    bool found = open_library(library, libraries[library].why);
    libraries[library].state = found ? STATE_loaded : STATE_missing;
  }
  bool found = libraries[library].state == STATE_loaded;
  if (!found) snprintf(why, CUDA_ERROR_ROOM, "%s", libraries[library].why);
  pthread_mutex_unlock(&lock);
  *out = found ? &loaded : NULL;
  return found;
}

bool cuda_load_driver(const CudaLoaded **out, char why[CUDA_ERROR_ROOM])
{
  return load(LIBRARY_driver, out, why);
}

bool cuda_load_nvrtc(const CudaLoaded **out, char why[CUDA_ERROR_ROOM])
{
  return load(LIBRARY_nvrtc, out, why);
}

bool cuda_load_blas(const CudaLoaded **out, char why[CUDA_ERROR_ROOM])
{
  return load(LIBRARY_blas, out, why);
}
