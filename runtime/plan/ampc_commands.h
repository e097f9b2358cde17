/* The commands of a plan: launches, products, convolutions, copies and loops of them. */
#ifndef AMPC_COMMANDS_H
#define AMPC_COMMANDS_H
#include "ampc_values.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The place of a command's operand. In iteration t of the innermost AMPC_REPEAT around the command,
 * the operand is t * stride bytes further, for instance at the next slice of a sequence. */
typedef struct ampc_operand {
  ampc_ref at;
  int64_t stride; /* bytes; 0: the same place in every iteration. Outside of a repeat: from member
                     to member. A number (AMPC_NONE) grows by `stride`, 0 or 1 */
} ampc_operand;

typedef struct ampc_launch {
  uint32_t kernel;      /* index into ampc_program.kernels */
  uint32_t grid, block; /* CUDA geometry. On the CPU `grid` is the number of threads that share the
                           work (a block has one thread there), and `block` is 1 */
  uint32_t n_args;
  const ampc_operand *args; /* pointers, and numbers that differ between launches of one kernel;
                               sizes are literals in its text */
  const struct ampc_attention *library; /* NULL, or what the kernel computes: a device calls its
                                           library instead if the library can compute that */
  bool once;     /* it changes what the members of a process share, so one of them runs it */
  bool deferred; /* the next launch has a library, and only its kernel reads what this one writes:
                 this one is launched with that kernel or not at all */
} ampc_launch;
enum { AMPC_MOST_DEFERRED = 8 }; /* arguments of a deferred launch */

/* C = A B (+ C) (+ bias), row-major, `batch` times with the given strides (elements).
 * A is [m, k], stored [k, m] if trans_a; B is [k, n], stored [n, k] if trans_b; C is [m, n].
 * Products are summed in f32 and, after the bias, rounded once to c_type. */
typedef struct ampc_gemm {
  int64_t m, n, k, batch;
  int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
  /* CUDA: rows, columns and terms of sums that the operands have room for beyond m, n and k. The
   * device may compute them, so that sizes are whole vectors: Note [odd sizes] */
  int64_t more_m, more_n, more_k;
  bool trans_a, trans_b;
  bool accumulate; /* beta = 1: C is read and added to; c_type is then f32 */
  bool tf32;       /* f32 operands are rounded to 10 mantissa bits first */
  bool has_bias;   /* one value per column, of bias_type */
  bool relu;       /* negative results become 0, after the bias; NaN stays */
  ampc_dtype a_type, b_type, c_type, bias_type;
  int64_t workspace; /* bytes; on the CPU for f32 copies of 16-bit operands and results, on CUDA for
                        cuBLASLt */
  uint32_t line;     /* line in the job, for messages; 0: no line */
} ampc_gemm;

/* A convolution (cross-correlation) over 1 to 3 spatial dimensions, or one of its gradients.
 * Channels are the last axis: x is [n, in.., c], y is [n, out.., k], and weights are [k, kernel..,
 * c / groups]. Along each dimension, out = (in + 2 pad - dilation (kernel - 1) - 1) / stride + 1.
 *   forward   y   = x * w (+ bias[k])
 *   data      x   = gradient of x from y's
 *   weight    w (+)= gradient of w from x and y's; f32 when accumulate
 * Products are summed in f32 and, after the bias, rounded once to the result's type. */
enum { AMPC_MAX_SPATIAL = 3 };
typedef enum ampc_conv_kind { AMPC_CONV_FORWARD, AMPC_CONV_DATA, AMPC_CONV_WEIGHT } ampc_conv_kind;
typedef struct ampc_conv {
  ampc_conv_kind kind;
  int64_t n, c, k, groups;
  uint32_t spatial; /* number of dimensions, which is the number of entries used in the arrays
                       below; the width is last */
  int64_t in[AMPC_MAX_SPATIAL], kernel[AMPC_MAX_SPATIAL], out[AMPC_MAX_SPATIAL];
  int64_t stride[AMPC_MAX_SPATIAL], pad[AMPC_MAX_SPATIAL], dilation[AMPC_MAX_SPATIAL];
  bool accumulate, tf32, has_bias;
  ampc_dtype x_type, w_type, y_type, bias_type; /* types; one of x, w, y is the result */
  int64_t workspace;                            /* bytes; 0 on CUDA, where the device has its own */
  /* CUDA: index, grid and block of the kernel that makes columns or computes the whole convolution:
   * conv_columns.h. grid 0: no kernel */
  uint32_t columns, grid, block;
  uint32_t line; /* line in the job, for messages; 0: no line */
} ampc_conv;

/* Attention, y = drop(softmax(scale q k^T)) v for each image and head, or the gradients of q, k and
 * v.
 *
 * q is [n, l, heads, d], k [n, s, heads, d], v [n, s, heads, e] and y [n, l, heads, e], all of one
 * type. `sums`, [n, l, heads] in f32, has for each query the logarithm of the sum of its weights
 * before normalization. Causal: query i attends to keys 0 to i. The result of a query without keys
 * is 0. Dropout drops weight i, row-major in [n, heads, l, s], if number i of `stream` is below p
 * (ampc_uniform of templates/device.cuh), and divides the other weights by 1 - p.
 *   forward    y and sums from q, k and v
 *   backward   dq, dk and dv from q, k, v, y, sums and dy
 * Products are summed in f32. Weights and gradients of scores are rounded to `type` before they are
 * multiplied; results are rounded when they are written. */
typedef struct ampc_attention_operand {
  uint32_t argument; /* argument of the launch, from 1; 0: not needed */
  int64_t first;     /* index in that argument of the operand's first element */
  int64_t stride[3]; /* elements, from one image, row, head to the next; the last axis is dense */
} ampc_attention_operand;
typedef struct ampc_attention_mask { /* bools: may a query attend to a key? */
  uint32_t argument;                 /* argument of the launch, from 1; 0: no mask */
  int64_t first, stride[4]; /* first: index of the first element. stride: along [n, heads, l, s]; 0:
                               the mask does not depend on that axis */
} ampc_attention_mask;
typedef struct ampc_attention {
  bool backward, causal;
  bool grouped; /* keys and values have fewer heads than queries: no library computes this */
  int64_t n, l, s, heads, d, e;
  ampc_attention_operand q, k, v, y, sums;
  ampc_attention_operand dy, dq, dk, dv; /* backward */
  ampc_attention_mask mask;
  double scale, p; /* p 0: no dropout */
  int64_t each;    /* numbers of the stream from one sample to the next; 0: not by sample */
  /* arguments of the launch, from 1: STATE, and the stream's number */
  uint32_t state, stream;
  ampc_dtype type;
  uint32_t line; /* line in the job, for messages; 0: no line */
} ampc_attention;

typedef enum ampc_command_kind {
  AMPC_LAUNCH_KERNEL,
  AMPC_GEMM,
  AMPC_CONV,
  AMPC_COPY,
  AMPC_FILL,
  AMPC_REPEAT,  /* a list of commands, `count` times in a row; operands without a stride carry
                   state from one iteration to the next */
  AMPC_EXCHANGE /* see ampc_exchange */
} ampc_command_kind;

/* What the members of a program exchange (ampc_program.members). The range is `count` elements of
 * `type`. SLICE and GATHER divide it into one slice for each member, of equal sizes. Numbers that
 * are added are f32. ampc_exchange_mode says in which order.
 *   SUM      each member gets the sum of all ranges
 *   SLICE    a reduce-scatter: member v gets the sum of all slices v, in its place. The rest of its
 *            range becomes 0, as the next step needs gradients of 0. The exchange runs beside the
 *            commands that follow, up to the next JOIN
 *   JOIN     waits for all SLICEs; has no range
 *   GATHER   slice v, as member v has it, goes to all members
 *   GATHER_WITH_NEXT
 *            the same; the next exchange is a GATHER, too, and a library may do both in one call.
 *            Such exchanges and the GATHER that ends them are a row. Their slices are there only
 *            after the last one of the row
 *   CLEAR    the range becomes 0 */
enum { AMPC_MOST_MEMBERS = 4096 };
typedef enum ampc_exchange_kind {
  AMPC_SUM,
  AMPC_SLICE,
  AMPC_JOIN,
  AMPC_GATHER,
  AMPC_GATHER_WITH_NEXT,
  AMPC_CLEAR
} ampc_exchange_kind;
/* How SUM and SLICE add what ranks have; the members of one rank are always added in the tree. */
typedef enum ampc_exchange_mode {
  AMPC_SUM_TREE, /* in a tree that depends on the number of members alone */
  AMPC_SUM_FAST, /* as the device's library adds; like AMPC_SUM_TREE on a device that has none */
  AMPC_SUM_BF16  /* as AMPC_SUM_TREE; ranks send numbers rounded to bf16, f32 in a short SUM */
} ampc_exchange_mode;
typedef struct ampc_exchange {
  ampc_exchange_kind kind;
  ampc_dtype type;
  int64_t count;
  bool closing; /* only in the last body of a step */
  ampc_exchange_mode mode;
} ampc_exchange;

typedef struct ampc_command {
  ampc_command_kind kind;
  const char *label; /* "fc1_gelu", "fc2_linear": as in the emitted text */
  uint32_t line;     /* line in the job, for messages and profiles; 0: no line */
  union {
    ampc_launch launch;
    struct {
      ampc_conv desc;
      ampc_operand x, w, bias, y, workspace;
    } conv;
    struct {
      ampc_gemm desc;
      ampc_operand a, b, bias, c, workspace;
    } gemm;
    struct {
      ampc_operand to, from;
      int64_t bytes;
    } copy;
    struct {
      ampc_operand to;
      uint8_t value;
      int64_t bytes;
    } fill;
    struct {
      int64_t count; /* at least 1 */
      const struct ampc_command *commands;
      uint32_t n_commands;
    } repeat;
    struct {
      ampc_exchange desc;
      ampc_operand at;
    } exchange;
  } as;
} ampc_command;

/* Return the bytes of workspace that the command needs on the CPU; 0 for a product of plain f32. */
int64_t ampc_gemm_workspace_cpu(const ampc_gemm *g, bool real64);
int64_t ampc_conv_workspace_cpu(const ampc_conv *d, bool real64);
/* Return the bytes of workspace on CUDA; `capability` is 90 for sm_90. A convolution's workspace is
 * outside WORK: this is the most that cuDNN or the program's own kernels may need. */
int64_t ampc_gemm_workspace_cuda(int capability);
int64_t ampc_conv_workspace_cuda(const ampc_conv *d, bool real64, int capability);

#ifdef __cplusplus
}
#endif
#endif
