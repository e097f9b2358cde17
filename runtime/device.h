/* The only interface between the runtime and a machine: what a device must be able to do.
 *
 * ampc_create picks the function that opens a device; everything else is called through this table.
 * Pointers from `alloc` are device addresses: only the device dereferences them, unless host_memory
 * says that they are plain memory. Calls of one device come from one thread at a time and take
 * effect in order. launch, gemm, conv, copy, fill, add, swap and gather may return before they are
 * done. */
#pragma once
#include "ampc_rt.h"

typedef struct Device Device;

enum { LOOKS = 32 };

/* Addresses of the operands of a product or a convolution. `bias` is read only if the description
 * has a bias. */
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
  /* Returns zeroed memory, aligned for any kernel. */
  ampc_status (*alloc)(Device *d, int64_t bytes, void **out);
  void (*release)(Device *d, void *memory);
  /* Copies the next batch in while earlier steps still run. A device that has two halves of INPUT
   * lets those steps read one half and fills the other. `turn_input` returns the half, 0 or 1, that
   * `bring` fills and that later calls read. `bring` is copy_in to that half. */
  ampc_status (*turn_input)(Device *d, int *out_half);
  ampc_status (*bring)(Device *d, void *to, const void *from, int64_t bytes);
  /* `bring` from memory of the device that the caller's stream writes. The copy follows that work,
   * and later work of the stream follows the copy. NULL: memory of the device is the host's. */
  ampc_status (*bring_on)(Device *d, void *to, const void *from, int64_t bytes, void *stream);
  /* Copy from the host, and back. The host may reuse its bytes when the call returns. */
  ampc_status (*copy_in)(Device *d, void *to, const void *from, int64_t bytes);
  ampc_status (*copy_out)(Device *d, void *to, const void *from, int64_t bytes);
  ampc_status (*copy)(Device *d, void *to, const void *from, int64_t bytes);
  ampc_status (*fill)(Device *d, void *to, uint8_t value, int64_t bytes);
  ampc_status (*launch)(Device *d, const ampc_kernel *kernel, uint32_t grid, uint32_t block,
                        void *const *args);
  /* The same launch for `rows` lists of arguments, one after the other in `args`. NULL: `launch` is
   * called for each. */
  ampc_status (*launch_rows)(Device *d, const ampc_kernel *kernel, uint32_t grid, uint32_t block,
                             void *const *args, uint32_t rows);
  ampc_status (*gemm)(Device *d, const ampc_gemm *g, const GemmOperands *at);
  ampc_status (*conv)(Device *d, const ampc_conv *c, const ConvOperands *at);
  /* Lets the library compute what a kernel would. *out_done is false if the library cannot compute
   * this one; then nothing has happened. `args` are the kernel's arguments. The pointer is NULL if
   * the library can replace no kernel. */
  ampc_status (*launch_by_library)(Device *d, const ampc_attention *a, void *const *args,
                                   bool *out_done);
  ampc_status (*prepare_launch)(Device *d, const ampc_attention *a); /* see prepare_conv */
  /* What exchanges consist of: ranks/exchange.h. `add`: adds n pieces of `count` numbers, f32 or
   * bf16, in one tree that depends on n alone: pieces 0 and 1, 2 and 3, .., then these sums, and so
   * on. Piece i begins i * apart bytes after `from`; the sums are f32, and `to` may be one of the
   * pieces if these are f32. `round`: rounds f32 numbers to bf16. `swap` and `gather` are
   * ranks_swap and ranks_gather for device memory; after gather(more) comes another gather, and the
   * bytes may be there only after the first one without `more`. `reduce` adds the f32 numbers of
   * all ranks as the library does, in place: all `count` numbers on all ranks, or with `piece` only
   * the own one of `size` pieces of `count` numbers; the pointer is NULL if there is no such
   * library. Between aside(true) and aside(false) the calls above and copies may run beside the
   * calls that follow, until `join`; both pointers are NULL if the device does one call after the
   * other. */
  ampc_status (*add)(Device *d, ampc_dtype type, void *to, const void *from, int64_t apart,
                     uint32_t n, int64_t count);
  ampc_status (*round)(Device *d, void *to, const void *from, int64_t count);
  ampc_status (*reduce)(Device *d, void *at, int64_t count, bool piece);
  ampc_status (*swap)(Device *d, const void *out, void *in, int64_t bytes);
  ampc_status (*gather)(Device *d, void *all, int64_t bytes, bool more);
  ampc_status (*aside)(Device *d, bool begins);
  ampc_status (*join)(Device *d);
  /* Does now what the first `conv` or `gemm` with this description would do once, such as choosing
   * an algorithm. Allocates little memory. */
  ampc_status (*prepare_conv)(Device *d, const ampc_conv *c);
  ampc_status (*prepare_gemm)(Device *d, const ampc_gemm *g);
  /* Writes the name that the device's library gives to the implementation of the convolution. The
   * text is valid as long as the device. NULL: the device does not know. */
  ampc_status (*conv_implementation)(Device *d, const ampc_conv *c, const char **out);
  /* Runs `body`, which makes the calls of step `key` (step_key()). These calls are always the same,
   * except for the half of INPUT, so a device may record and repeat them. Before it records, it may
   * run them once in a way that changes only scratch memory. `state` is the STATE space of the
   * first member. */
  ampc_status (*step)(Device *d, uint32_t key, void *state, ampc_status (*body)(void *context),
                      void *context);
  /* Makes the trial run of `step` for a step that sums the gradients of several bodies. The trial
   * run leaves those gradients zero, so it must come before the first body. A device that records
   * nothing does nothing here. */
  ampc_status (*rehearse)(Device *d, uint32_t key, void *state, ampc_status (*body)(void *context),
                          void *context);
  /* Reading without waiting. `look` copies the bytes, as all calls so far leave them, to one of
   * LOOKS buffers; `slot` is the number of the buffer. `looked` copies the buffer to `to`. If the
   * bytes have not arrived, it waits (`wait`) or sets *out_there to false. */
  ampc_status (*look)(Device *d, uint32_t slot, const void *from, int64_t bytes);
  ampc_status (*looked)(Device *d, uint32_t slot, bool wait, void *to, int64_t bytes,
                        bool *out_there);
  /* Returns the bytes outside the spaces that libraries use for everything that was prepared. */
  int64_t (*library_bytes)(const Device *d);
  /* Notes for d->profile that `command` (an index in ampc_runtime.bound) begins, and that the one
   * before it ends; MARK_END: none begins. Called in `body` of `step`. */
  ampc_status (*mark)(Device *d, int64_t command);
  ampc_status (*wait)(Device *d); /* blocks until all calls are done; reports their errors */
  void (*close)(Device *d);
} DeviceOps;

struct Device { /* the first member of each device's own struct */
  const DeviceOps *ops;
  char name[128];          /* "cpu", "cuda:0 NVIDIA H200" */
  bool host_memory;        /* the host can read a space directly */
  int inputs;              /* halves of INPUT: 1 or 2 */
  struct Ranks *ranks;     /* NULL: no other process trains with this one */
  struct Profile *profile; /* NULL, or where times of commands are kept: profile.h */
  int64_t waits;           /* how often the host blocked until all calls of the device were done */
};

/* The device that a name selects. `gpu` is the 1 of "cuda:1", or ANY_GPU. device_read returns false
 * if `text` is not one of DEVICE_NAMES. */
#define DEVICE_NAMES "cpu, cuda, cuda:K or auto"
typedef enum DeviceKind { DEVICE_CPU, DEVICE_CUDA, DEVICE_AUTO } DeviceKind;
typedef struct DeviceWish {
  DeviceKind kind;
  int gpu;
} DeviceWish;
bool device_read(const char *text, DeviceWish *out);

/* Returns the bytes from the beginning of one copy of a space to that of the next. Each member has
 * a copy, and of INPUT two, if the device has two halves. */
int64_t device_step(const ampc_program *p, ampc_space s);
/* turn_input for a device that has one INPUT: always half 0. */
ampc_status device_one_input(Device *d, int *out_half);
/* rehearse for a device that records nothing: does nothing. */
ampc_status device_no_rehearsal(Device *d, uint32_t key, void *state,
                                ampc_status (*body)(void *context), void *context);
/* Opens the CPU for programs of target "cpu". */
ampc_status cpu_device_open(const ampc_program *p, Device **out);
/* Opens the GPU with this index for programs of target "sm_xx". ANY_GPU opens the first GPU that is
 * free and can run the program. `members`: how many members of the program this process runs. */
enum { ANY_GPU = -1 };
ampc_status cuda_device_open(const ampc_program *p, int64_t members, int gpu, Device **out);
/* Says that this process is one of several ranks. "cuda" and "auto" then mean the GPU with the
 * rank's number on its host, and "cuda:K" is refused, unless the process sees only one GPU. Call it
 * before a device is opened or ampc_device_target is called. */
void cuda_set_rank(const struct Ranks *r);
/* Joins the GPUs of the other ranks, and sets d->ranks. All ranks make this call, right after
 * cuda_device_open; it does nothing if there is one rank. */
ampc_status cuda_use_ranks(Device *d, struct Ranks *r);
/* Returns library_bytes of a GPU that is not opened yet, for so many members, without cuDNN's
 * scratch space. */
int64_t cuda_bytes_beside(const ampc_program *p, int64_t members);
/* Returns the most bytes outside the spaces that launch_by_library may need on a GPU of this
 * compute capability. */
int64_t cuda_launch_scratch(const ampc_attention *a, int capability);
