/* Shared by the files of the CUDA device. */
#pragma once
#include "runtime/device.h"
#include "load.h"

typedef struct Staging Staging;
typedef struct Inputs Inputs;
typedef struct Looks Looks;
typedef struct BlasLibrary BlasLibrary;
typedef struct ProductPlans ProductPlans;
typedef struct DnnLibrary DnnLibrary;
typedef struct DnnChoices DnnChoices;
typedef struct Recording Recording;

typedef struct Mark { /* an event where a command begins; MARK_END: at the end of the step */
  CuEvent event;
  int64_t command;
} Mark;
typedef struct Marks {
  Mark *at;
  uint32_t n, room;
  bool direct; /* the step runs without a recording */
} Marks;

/* Texts of PTX with kernels of our own: relu.c contains one, product.ptx, kept.ptx and add.ptx are
 * made from product.cu, kept.cu and add.cu by NVRTC. */
typedef enum OwnText { OWN_RELU, OWN_PRODUCT, OWN_KEPT, OWN_ADD, OWN_COUNT } OwnText;

typedef struct Nccl { /* how the GPU exchanges with those of other ranks */
  const NcclApi *api;
  NcclComm comm;
  CuStream side; /* the other stream of Note [aside] */
  CuEvent forked, joined, awaited;
  bool pending; /* the side stream has work that the main one has not joined */
  bool group;   /* a group of gathers has begun and not ended */
  bool failed;  /* other ranks may be gone */
} Nccl;

typedef struct CudaDevice {
  Device device;
  const CudaApi *api;
  const ampc_program *program;
  int64_t members; /* of the program in this process */
  int capability;  /* compute capability of the GPU: 90 for 9.0 */
  CuDevice gpu;
  CuContext context;     /* the primary context, so that programs built by nvcc share it */
  CuStream stream;       /* all work of the device in order, except batches */
  CuStream input;        /* batches on their way to INPUT: Note [halves of INPUT] */
  int half;              /* the half of INPUT that steps read from now on */
  CuModule *modules;     /* one per image of the program */
  CuFunction *functions; /* one per kernel */
  Staging *staging;
  Inputs *inputs;
  Looks *looks;
  BlasLibrary *blas;
  ProductPlans *products;
  DnnChoices *choices;     /* NULL before the first problem of cuDNN */
  CuModule own[OWN_COUNT]; /* NULL before the first call */
  /* two per step, one for each half of INPUT; then as many with the events of a profile */
  Recording *recordings;
  Nccl *nccl;       /* NULL: no other ranks */
  Marks *marks;     /* where a recording keeps its events; NULL: it has none */
  void *kept_state; /* copies of the members' STATE while a step is tried out */
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

/* Calls the driver and returns a status; if it is not 0, ampc_last_error is set. */
#define CUDA(d, call) cuda_status(d, (d)->api->call, #call)
ampc_status cuda_status(const CudaDevice *d, CuResult r, const char *call);
/* Does the same for a call that requests `bytes` bytes of memory. */
ampc_status cuda_no_memory(const CudaDevice *d, CuResult r, const char *call, int64_t bytes);

/* ---- what all devices of the process share: shared.c ---- */

/* Every call that opens or closes a device holds this lock, and so does the first run of a step:
 * Note [one at a time]. The lock is recursive. */
void setup_lock(void);
void setup_unlock(void);

/* A library's handle costs memory and time, and it works only on the GPU for which it was made. So
 * all devices that use one GPU share a handle. Shared is the first member of the struct that holds
 * the handle. Call these functions under the lock. */
typedef struct Shared {
  struct Shared *next;
  CuDevice gpu;
  int users;
} Shared;
void *shared_join(Shared *list, CuDevice gpu);             /* adds a user; NULL: no handle yet */
void shared_add(Shared **list, Shared *new, CuDevice gpu); /* adds a handle with one user */
bool shared_leave(Shared **list, Shared *s); /* true: this was the last user, and s is removed */

ampc_status blas_open(CudaDevice *d); /* loads cuBLASLt and sets d->blas */
void blas_close(CudaDevice *d);       /* the last user of a GPU frees its handle */
LtHandle blas_handle(const CudaDevice *d);

/* ---- the GPU: gpu.c ---- */

/* Opens the GPU with number `wish`, or with ANY_GPU the first GPU that is free and can run the
 * program. Sets device.name, capability and the context. */
ampc_status gpu_open(CudaDevice *d, int wish);
ampc_status gpu_enter(CudaDevice *d); /* makes the context current in this thread */
void gpu_close(CudaDevice *d);

/* ---- kernels: module.c ---- */

ampc_status modules_open(CudaDevice *d); /* sets d->functions */
void modules_close(CudaDevice *d);
ampc_status cuda_launch(Device *d, const ampc_kernel *kernel, uint32_t grid, uint32_t block,
                        void *const *args);
/* Launches a kernel of our own with `grid` blocks of OWN_BLOCK threads. */
enum { OWN_BLOCK = 256 };
ampc_status cuda_run_own(CudaDevice *d, OwnText text, const char *name, int64_t grid,
                         void **arguments);
extern const char cuda_relu_ptx[], cuda_product_ptx[], cuda_kept_ptx[], cuda_add_ptx[];

/* ---- between host and device: copy.c ---- */

ampc_status staging_open(CudaDevice *d);
void staging_close(CudaDevice *d);
ampc_status cuda_turn_input(Device *d, int *out_half);
ampc_status cuda_bring(Device *d, void *to, const void *from, int64_t bytes);
ampc_status cuda_bring_on(Device *d, void *to, const void *from, int64_t bytes, void *stream);
ampc_status cuda_copy_in(Device *d, void *to, const void *from, int64_t bytes);
ampc_status cuda_copy_out(Device *d, void *to, const void *from, int64_t bytes);
ampc_status cuda_look(Device *d, uint32_t slot, const void *from, int64_t bytes);
ampc_status cuda_looked(Device *d, uint32_t slot, bool wait, void *to, int64_t bytes,
                        bool *out_there);
ampc_status cuda_wait(Device *d);

/* ---- other ranks: nccl.c, and exchanges with them: exchange.c ---- */

void nccl_close(CudaDevice *d);
/* Turns NCCL's result into a status, after the call is no longer in progress. */
ampc_status nccl_done(CudaDevice *d, NcclResult r, const char *call);
/* Wait until an event has occurred, or until d->stream is done: Note [waits with ranks]. */
ampc_status cuda_await(CudaDevice *d, CuEvent event);
ampc_status cuda_await_stream(CudaDevice *d);
ampc_status cuda_add(Device *d, ampc_dtype type, void *to, const void *from, int64_t apart,
                     uint32_t n, int64_t count);
ampc_status cuda_round(Device *d, void *to, const void *from, int64_t count);
ampc_status cuda_reduce(Device *d, void *at, int64_t count, bool piece);
ampc_status cuda_swap(Device *d, const void *out, void *in, int64_t bytes);
ampc_status cuda_gather(Device *d, void *all, int64_t bytes, bool more);
ampc_status cuda_aside(Device *d, bool begins);
ampc_status cuda_join(Device *d);

/* ---- matrix products: gemm.c, plan of a product: product.c ---- */

ampc_status products_open(CudaDevice *d);
void products_close(CudaDevice *d);
/* Does nothing: a plan depends on the operands' alignment, so the first cuda_gemm makes it. */
ampc_status cuda_prepare_gemm(Device *d, const ampc_gemm *g);
ampc_status cuda_gemm(Device *d, const ampc_gemm *g, const GemmOperands *at);

/* ---- the relu of products whose library loses NaN: relu.c ---- */

typedef struct Rows {
  int64_t count, columns, gap; /* gap: elements between two rows */
} Rows;
ampc_status cuda_relu(CudaDevice *d, ampc_dtype type, void *x, const Rows *rows); /* in place */

/* ---- convolutions: conv_choice.c, by own kernels: conv.c ---- */

ampc_status cuda_conv(Device *d, const ampc_conv *c, const ConvOperands *at);
ampc_status cuda_prepare_conv(Device *d, const ampc_conv *c);

/* ---- dropout and masks as tensors for cuDNN: kept.c ---- */

/* The tensor that is written. `dim`: its sizes [n, heads, l, s]; 1: the tensor does not depend on
 * that axis. `mask`: the job's mask, or NULL; `stride`: its strides along these axes. */
typedef struct KeptWalk {
  int64_t dim[4], stride[4];
  const void *mask;
} KeptWalk;
/* Dropout with probability p, as in ampc_attention; p 0: only the mask. The first element takes
 * random number `first` of `stream`, after `each` numbers for each sample before the member's first
 * one. `causal`: no number is drawn for a key after its query. */
typedef struct KeptDraws {
  ampc_dtype type; /* of 16 bits, or f32 */
  double p;
  bool causal;
  const void *state;
  uint64_t stream, first, each;
} KeptDraws;
/* Writes 1 where a weight is kept, in f32 1 / (1 - p); otherwise 0. */
ampc_status cuda_kept(CudaDevice *d, const KeptWalk *walk, const KeptDraws *draws, void *out);
/* Writes 0 where a query may attend to a key, otherwise a very low score; f32. */
ampc_status cuda_bias(CudaDevice *d, const KeptWalk *walk, void *out);

/* ---- launches that cuDNN may do instead ---- */

ampc_status cuda_launch_by_library(Device *d, const ampc_attention *a, void *const *args,
                                   bool *out_done);
ampc_status cuda_prepare_launch(Device *d, const ampc_attention *a);

/* ---- by cuDNN or own kernels: cudnn_choice.c ---- */

void dnn_choices_close(CudaDevice *d);
int64_t dnn_scratch_bytes(const CudaDevice *d); /* bytes of scratch outside WORK */

/* ---- a step as one graph: graph.c ---- */

ampc_status recordings_open(CudaDevice *d);
int64_t recordings_bytes(const ampc_program *p, int64_t members); /* that they take on the GPU */
void recordings_close(CudaDevice *d);
ampc_status cuda_step(Device *d, uint32_t key, void *state, ampc_status (*body)(void *context),
                      void *context);
ampc_status cuda_rehearse(Device *d, uint32_t key, void *state, ampc_status (*body)(void *context),
                          void *context);

/* ---- times of commands: times.c ---- */

ampc_status cuda_mark(Device *d, int64_t command);
/* Waits for the step and adds its commands to the profile. */
ampc_status marks_read(CudaDevice *d, const Marks *m);
void marks_free(CudaDevice *d, Marks *m);
/* Runs a step without a recording, for a tool that shows ranges. */
ampc_status cuda_step_direct(CudaDevice *d, ampc_status (*body)(void *context), void *context);
