/* What all CUDA devices of a process share: a lock, and cuBLASLt's handle of each GPU.
 *
 * Note [one at a time]
 * While a thread records a step, no other may allocate or free memory, load a module or start a
 * library: such calls wait for the whole GPU or use its default stream, which a recording does not
 * bear, whoever makes them. So all that opens or closes a device, and the first run of a step, hold
 * one lock. A step that has been recorded never takes it. */
#include <pthread.h>
#include <stdlib.h>
#include "cuda_device.h"

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void setup_lock(void)
{
  pthread_mutex_lock(&lock);
}

void setup_unlock(void)
{
  pthread_mutex_unlock(&lock);
}

/* ---- cuBLASLt ---- */

/* A handle takes memory and time, so devices share one; it belongs to the GPU where it was made. */
struct BlasLibrary {
  BlasLibrary *next;
  CuDevice gpu;
  LtHandle handle;
  int users;
};
static BlasLibrary *libraries; /* guarded by the lock */

static BlasLibrary *find(CuDevice gpu)
{
  BlasLibrary *l = libraries;
  while (l && l->gpu != gpu) l = l->next;
  return l;
}

static ampc_status start(const CudaDevice *d, BlasLibrary **out)
{
  BlasLibrary *l = calloc(1, sizeof *l);
  if (!l) return ampc_fail(AMPC_RUN_FAILED, "out of memory for products");
  LtStatus status = d->api->cublasLtCreate(&l->handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    free(l);
    return ampc_fail(AMPC_RUN_FAILED, "%s: cuBLASLt does not start: %s", d->device.name,
                     d->api->cublasLtGetStatusString(status));
  }
  l->gpu = d->gpu;
  l->next = libraries;
  libraries = *out = l;
  return AMPC_OK;
}

ampc_status blas_open(CudaDevice *d)
{
  const CudaApi *cuda;
  char why[AMPC_WHY_ROOM];
  if (!cuda_load_blas(&cuda, why)) return ampc_fail(AMPC_RUN_FAILED, "%s: %s", d->device.name, why);
  setup_lock();
  BlasLibrary *l = find(d->gpu);
  ampc_status status = l ? AMPC_OK : start(d, &l);
  if (!status) l->users++;
  d->blas = l;
  setup_unlock();
  return status;
}

void blas_close(CudaDevice *d)
{
  BlasLibrary *l = d->blas;
  if (!l) return;
  setup_lock();
  if (--l->users == 0) {
    BlasLibrary **at = &libraries;
    while (*at != l) at = &(*at)->next;
    *at = l->next;
    d->api->cublasLtDestroy(l->handle);
    free(l);
  }
  d->blas = NULL;
  setup_unlock();
}

LtHandle blas_handle(const CudaDevice *d)
{
  return d->blas->handle;
}
