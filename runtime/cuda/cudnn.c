/* Loads cuDNN when a program first has a convolution or attention; see cudnn.h. */
#include "cudnn.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_bool unwanted;
static Shared *libraries;

void ampc_use_cudnn(bool use)
{
  atomic_store(&unwanted, !use);
}

/* Collects the facts that a plan depends on: it contains code for one GPU, and is valid only for
 * these attributes and this version of cuDNN. DNN_PLAN_VERSION stands for our own rules. */
static void identify(const CudaDevice *d, const DnnApi *api, DnnLibrary *l)
{
  static const CuDeviceAttribute attributes[] = {
      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
      CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
      CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
      CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,
      CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
  };
  int driver = 0;
  char name[96] = "";
  d->api->cuDriverGetVersion(&driver);
  d->api->cuDeviceGetName(name, sizeof name, d->gpu);
  size_t at =
      (size_t)snprintf(l->identity, sizeof l->identity, "plan %d cudnn %zu driver %d sm %d %s",
                       DNN_PLAN_VERSION, api->cudnnGetVersion(), driver, d->capability, name);
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    int value = 0;
    d->api->cuDeviceGetAttribute(&value, attributes[i], d->gpu);
    at += (size_t)snprintf(l->identity + at, sizeof l->identity - at, " %d", value);
  }
}

static DnnLibrary *start(const CudaDevice *d, const DnnApi *api, char *why)
{
  DnnLibrary *l = calloc(1, sizeof *l);
  DnnStatus s = l ? api->cudnnCreate(&l->machine.handle) : CUDNN_STATUS_SUCCESS;
  if (!l || s) {
    snprintf(why, AMPC_WHY_ROOM, "cuDNN does not start: %s",
             l ? api->cudnnGetErrorString(s) : "out of memory");
    free(l);
    return NULL;
  }
  l->machine.api = api;
  l->machine.capability = d->capability;
  identify(d, api, l);
  shared_add(&libraries, &l->shared, d->gpu);
  return l;
}

DnnLibrary *dnn_open(CudaDevice *d, char why[AMPC_WHY_ROOM])
{
  const DnnApi *api;
  if (atomic_load(&unwanted)) {
    snprintf(why, AMPC_WHY_ROOM, "--no-cudnn");
    return NULL;
  }
  if (!cuda_load_dnn(&api, why)) return NULL;
  setup_lock();
  DnnLibrary *l = shared_join(libraries, d->gpu);
  if (!l) l = start(d, api, why);
  setup_unlock();
  return l;
}

void dnn_close(DnnLibrary *l)
{
  if (!l) return;
  setup_lock();
  if (shared_leave(&libraries, &l->shared)) {
    l->machine.api->cudnnDestroy(l->machine.handle);
    free(l);
  }
  setup_unlock();
}
