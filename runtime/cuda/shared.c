/* What all CUDA devices of a process share: a lock, and the libraries' handles for each GPU.
 *
 * Note [one at a time]
 * While a thread records a step, no other thread may allocate or free memory, load a module or
 * start a library. Such calls wait for the whole GPU or use its default stream, and either breaks a
 * recording, even from another thread. So everything that opens or closes a device, and the first
 * run of a step, holds one lock. A recorded step never takes the lock. */
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

void *shared_join(Shared *list, CuDevice gpu)
{
  while (list && list->gpu != gpu) list = list->next;
  if (list) list->users++;
  return list;
}

void shared_add(Shared **list, Shared *new, CuDevice gpu)
{
  *new = (Shared){.next = *list, .gpu = gpu, .users = 1};
  *list = new;
}

bool shared_leave(Shared **list, Shared *s)
{
  if (--s->users > 0) return false;
  while (*list != s) list = &(*list)->next;
  *list = s->next;
  return true;
}

/* ---- cuBLASLt ---- */

struct BlasLibrary {
  Shared shared;
  LtHandle handle;
};
static Shared *libraries;

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
  shared_add(&libraries, &l->shared, d->gpu);
  *out = l;
  return AMPC_OK;
}

ampc_status blas_open(CudaDevice *d)
{
  const CudaApi *cuda;
  char why[AMPC_WHY_ROOM];
  if (!cuda_load_blas(&cuda, why)) return ampc_fail(AMPC_RUN_FAILED, "%s: %s", d->device.name, why);
  setup_lock();
  d->blas = shared_join(libraries, d->gpu);
  ampc_status status = d->blas ? AMPC_OK : start(d, &d->blas);
  setup_unlock();
  return status;
}

void blas_close(CudaDevice *d)
{
  BlasLibrary *l = d->blas;
  if (!l) return;
  setup_lock();
  if (shared_leave(&libraries, &l->shared)) {
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
