/* A call of attention by cuDNN: operands at any place in memory, and its results in double. */
#pragma once
#include "ampc_rt.h"
#include "runtime/device.h"

/* The operands of a call, on the host and on the device. Rows of q, k and v are in one tensor. */
enum { QKV, Y, SUMS, DY, DQ, DK, DV, TENSORS };
enum { STATE = TENSORS, STREAM, MASK, ARGUMENTS, SEED = 5, BODY = 3, DRAWS = 9 };
typedef struct Call {
  Device *device;
  ampc_attention a;
  int64_t n[TENSORS];
  float *at[TENSORS];
  unsigned char *mask;
  void *args[ARGUMENTS];
} Call;

extern ampc_program call_program; /* of the device that call_of opens */

/* Returns a call with as many keys as queries. Heads are contiguous in rows of 3 * heads * d. */
Call call_of(int64_t n, int64_t l, int64_t heads, int64_t d, bool causal);
/* Adds a mask that depends on these axes. The queries of its last row attend to no key. */
void call_mask(Call *c, const bool axes[4]);
void call_fetch(const Call *c, int argument); /* copies an operand from the device */
void call_end(Call *c);

/* Compare results of an image and a head with sums in double. They print the first wrong numbers,
 * and return how many there are. */
unsigned call_forward_wrong(const Call *c, int64_t image, int64_t head);
unsigned call_backward_wrong(const Call *c, int64_t image, int64_t head);
