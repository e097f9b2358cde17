/* The one seam between the runtime and a machine: what a device must be able to do.
 *
 * A device is opened by the function that ampc_create picks; all else goes through this table.
 * Pointers that come from `alloc` are device addresses: only the device looks behind them, unless
 * host_memory says that they are plain memory. Calls of one device come from one thread at a time
 * and take effect in order; launches, gemm, conv, copy, fill and all_reduce may return before
 * they are done. */
#pragma once
#include "ampc_rt.h"

typedef struct Device Device;

enum { LOOKS = 32 };

/* The addresses of the operands of a matrix product or a convolution; `bias` is read only by those
 * that have one. */
typedef struct GemmOperands {
  const void *a, *b, *bias;
  void *c, *workspace;
} GemmOperands;
typedef struct ConvOperands {
  void *x, *w;
  const void *bias;
  void *y, *workspace;
} ConvOperands;

typedef struct DeviceOps {
  /* Zeroed memory, aligned for any kernel. */
  ampc_status (*alloc)(Device *d, int64_t bytes, void **out);
  void (*release)(Device *d, void *memory);
  /* The batch of the next step, while steps are under way: a device that keeps INPUT twice has
   * them read one half and fills the other. `turn_input` gives the half, 0 or 1, that `bring` fills
   * and that calls from then on read; `bring` is copy_in, into that half. */
  ampc_status (*turn_input)(Device *d, int *out_half);
  ampc_status (*bring)(Device *d, void *to, const void *from, int64_t bytes);
  /* Host to device and back; the host's bytes may be reused when the call returns. */
  ampc_status (*copy_in)(Device *d, void *to, const void *from, int64_t bytes);
  ampc_status (*copy_out)(Device *d, void *to, const void *from, int64_t bytes);
  ampc_status (*copy)(Device *d, void *to, const void *from, int64_t bytes);
  ampc_status (*fill)(Device *d, void *to, uint8_t value, int64_t bytes);
  ampc_status (*launch)(Device *d, const ampc_kernel *kernel, uint32_t grid, uint32_t block,
                        void *const *args);
  ampc_status (*gemm)(Device *d, const ampc_gemm *g, const GemmOperands *at);
  ampc_status (*conv)(Device *d, const ampc_conv *c, const ConvOperands *at);
  /* What a kernel computes, by the library. NULL: it can do nothing of that kind. Otherwise
   * *out_done tells whether it does this; if not, nothing has happened. args: the kernel's. */
  ampc_status (*launch_by_library)(Device *d, const ampc_attention *a, void *const *args,
                                   bool *out_done);
  ampc_status (*prepare_launch)(Device *d, const ampc_attention *a); /* like prepare_conv */
  /* The sum over all devices of the world, in place on each. In a world of one it is there. */
  ampc_status (*all_reduce)(Device *d, void *at, ampc_dtype type, int64_t count);
  /* Does what can be done before the first `conv` or `gemm` of this kind, which does it otherwise.
   * Allocates no memory that counts. */
  ampc_status (*prepare_conv)(Device *d, const ampc_conv *c);
  ampc_status (*prepare_gemm)(Device *d, const ampc_gemm *g);
  /* What would compute it on this machine, in the words of its library; they live as long as the
   * device. NULL: the device cannot tell. */
  ampc_status (*conv_implementation)(Device *d, const ampc_conv *c, const char **out);
  /* Runs `body`, which makes the calls of step `key` (step_key()), always the same ones: a
   * device may record and repeat them. Before it records, it may run them once in a way that
   * changes nothing but scratch memory; `state` is the STATE space. Calls are the same but for the
   * half of INPUT. */
  ampc_status (*step)(Device *d, uint32_t key, void *state, ampc_status (*body)(void *context),
                      void *context);
  /* What `step` does before it records, for one whose bodies add gradients up: it leaves those
   * zero, so it comes before the first body. A device that records nothing has nothing to do. */
  ampc_status (*rehearse)(Device *d, uint32_t key, void *state, ampc_status (*body)(void *context),
                          void *context);
  /* Reading without waiting: the bytes as all calls so far leave them are kept in one of LOOKS
   * slots until `looked` takes them, which says whether they are there yet, or waits for them. */
  ampc_status (*look)(Device *d, uint32_t slot, const void *from, int64_t bytes);
  ampc_status (*looked)(Device *d, uint32_t slot, bool wait, void *to, int64_t bytes,
                        bool *out_there);
  /* Memory of vendors' libraries beside the spaces, for all that was prepared. */
  int64_t (*library_bytes)(const Device *d);
  ampc_status (*wait)(Device *d); /* until all is done; reports late errors */
  void (*close)(Device *d);
} DeviceOps;

struct Device { /* the first member of each device's own struct */
  const DeviceOps *ops;
  char name[128];   /* "cpu", "cuda:0 NVIDIA H200" */
  bool host_memory; /* reading a space costs nothing */
  int inputs;       /* halves of INPUT: 1 or 2 */
  int64_t waits;    /* how often the host stood still until all that it had asked for was done */
};

/* The device that a name asks for; `gpu` is the 1 of "cuda:1", else ANY_GPU. device_read is false
 * if `text` is none of DEVICE_NAMES. */
#define DEVICE_NAMES "cpu, cuda, cuda:K or auto"
typedef enum DeviceKind { DEVICE_CPU, DEVICE_CUDA, DEVICE_AUTO } DeviceKind;
typedef struct DeviceWish {
  DeviceKind kind;
  int gpu;
} DeviceWish;
bool device_read(const char *text, DeviceWish *out);

/* Bytes from one half of INPUT to the next. */
int64_t device_input_step(const ampc_program *p);
/* turn_input of a device that keeps INPUT once. */
ampc_status device_one_input(Device *d, int *out_half);
/* all_reduce of a device that is alone. */
ampc_status device_alone_all_reduce(Device *d, void *at, ampc_dtype type, int64_t count);
/* rehearse of a device that records nothing. */
ampc_status device_no_rehearsal(Device *d, uint32_t key, void *state,
                                ampc_status (*body)(void *context), void *context);
/* Runs programs of target "cpu" on this machine's cores. */
ampc_status cpu_device_open(const ampc_program *p, Device **out);
/* Opens the GPU with this index for programs of target "sm_xx". ANY_GPU opens the first GPU that is
 * free and can run the program. */
enum { ANY_GPU = -1 };
ampc_status cuda_device_open(const ampc_program *p, int gpu, Device **out);
int64_t cuda_bytes_beside(const ampc_program *p); /* library_bytes, before it is opened */
/* The most of these bytes that launch_by_library may need, on a GPU of this capability. */
int64_t cuda_launch_scratch(const ampc_attention *a, int capability);
