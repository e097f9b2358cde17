/* What the files of the CUDA device share. */
#pragma once
#include "runtime/device.h"
#include "load.h"

typedef struct Staging Staging;
typedef struct Looks Looks;
typedef struct ProductPlans ProductPlans;
typedef struct Recording Recording;

typedef struct CudaDevice {
  Device device;
  const CudaApi *api;
  const ampc_program *program;
  int capability; /* of the GPU: 90 for 9.0 */
  CuDevice gpu;
  CuContext context;     /* the primary one, so that programs built by nvcc share it */
  CuStream stream;       /* all work of the device, in order */
  CuModule *modules;     /* one an image of the program */
  CuFunction *functions; /* one a kernel */
  Staging *staging;
  Looks *looks;
  ProductPlans *products;
  Recording *recordings; /* one a step: 2 block + variant */
  void *kept_state;      /* room for STATE while a step is tried out */
} CudaDevice;

static inline CudaDevice *cuda_of(Device *d)
{
  return (CudaDevice *)d;
}

static inline CuPointer cuda_address(const void *p)
{
  return (CuPointer)(uintptr_t)p;
}

/* ---- errors: error.c ---- */

/* A call of the driver: a status, with ampc_last_error set when it is not 0. */
#define CUDA(d, call) cuda_status(d, (d)->api->call, #call)
ampc_status cuda_status(const CudaDevice *d, CuResult r, const char *call);
/* The same for memory that was asked for. */
ampc_status cuda_no_memory(const CudaDevice *d, CuResult r, const char *call, int64_t bytes);

/* ---- the GPU: gpu.c ---- */

/* Opens the GPU that can run the program: device.name, capability, context. */
ampc_status gpu_open(CudaDevice *d);
ampc_status gpu_enter(CudaDevice *d); /* makes the context that of this thread */
void gpu_close(CudaDevice *d);

/* ---- kernels: module.c ---- */

ampc_status modules_open(CudaDevice *d); /* fills in d->functions */
void modules_close(CudaDevice *d);
ampc_status cuda_launch(Device *d, const ampc_kernel *kernel, uint32_t grid, uint32_t block,
                        void *const *args);

/* ---- between host and device: copy.c ---- */

ampc_status staging_open(CudaDevice *d);
void staging_close(CudaDevice *d);
ampc_status cuda_copy_in(Device *d, void *to, const void *from, int64_t bytes);
ampc_status cuda_copy_out(Device *d, void *to, const void *from, int64_t bytes);
ampc_status cuda_look(Device *d, uint32_t slot, const void *from, int64_t bytes);
ampc_status cuda_looked(Device *d, uint32_t slot, bool wait, void *to, int64_t bytes,
                        bool *out_there);
ampc_status cuda_wait(Device *d);

/* ---- matrix products: gemm.c, plan of a product: product.c ---- */

ampc_status products_open(CudaDevice *d);
void products_close(CudaDevice *d);
/* Nothing: what the library plans depends on where the operands lie, so the first call does it. */
ampc_status cuda_prepare_gemm(Device *d, const ampc_gemm *g);
ampc_status cuda_gemm(Device *d, const ampc_gemm *g, const void *a, const void *b, const void *bias,
                      void *c, void *workspace);

/* ---- convolutions: conv.c ---- */

ampc_status cuda_conv(Device *d, const ampc_conv *c, void *x, void *w, const void *bias, void *y,
                      void *workspace);
ampc_status cuda_prepare_conv(Device *d, const ampc_conv *c);

/* ---- a step as one graph: graph.c ---- */

ampc_status recordings_open(CudaDevice *d);
void recordings_close(CudaDevice *d);
ampc_status cuda_step(Device *d, uint32_t key, void *state, ampc_status (*body)(void *context),
                      void *context);
