/* One convolution: the library's objects, made once, then only run; or loops of our own. */
#pragma once
#include <oneapi/dnnl/dnnl.h>
#include "runtime/plan/conv_tiling.h"
#include "cpu.h"

/* Objects that may be used by one thread at a time. */
typedef struct ConvLane {
  dnnl_stream_t stream;
  dnnl_memory_t x[2], w, y[2], scratch; /* [0] of tiling.images, [1] of the last share */
  dnnl_memory_t plain, packed;          /* of a slice */
} ConvLane;

typedef struct ConvPlan {
  ampc_conv desc;
  ConvTiling tiling;
  ampc_dtype x_type, w_type, y_type; /* in which it takes and gives them: f32 or bf16 */
  char name[48];                     /* of the implementation: the library's, or "loops" */
  bool loops;                        /* by conv_loops.c; there are no objects then */
  int64_t rest;                      /* images of the last share */
  int64_t filters;                   /* that a primitive sees: all, or those of a slice */
  dnnl_primitive_t run[2], reorder;  /* reorder: a slice of w, from or to its own order */
  dnnl_memory_t packed, bias;
  void *packed_at; /* where they are, for loops */
  const void *bias_at;
  int64_t slice_bytes; /* from a packed slice to the next */
  int64_t scratch;     /* bytes a lane; a multiple of 64 */
  int64_t lanes;
  ConvLane *lane;
} ConvPlan;

ampc_status conv_plan_create(dnnl_engine_t engine, const ampc_conv *d, ConvPlan **out);
void conv_plan_free(ConvPlan *plan);
/* Before the shares are run: a slice of the weights into the library's order. Forward, data. */
dnnl_status_t conv_plan_pack(ConvPlan *plan, int64_t slice, const void *plain, char *packed);
/* After that: where all weights and the bias are. */
dnnl_status_t conv_plan_operands(ConvPlan *plan, void *packed, const void *bias);
/* One share. `w`: where a weight gradient goes, in the library's order; else not looked at. The
 * workspace is the library's scratch space. */
dnnl_status_t conv_plan_run(ConvPlan *plan, int64_t lane, int64_t images, const ConvOperands *at);
/* A weight gradient, or a slice of it, into its own order. */
dnnl_status_t conv_plan_unpack(ConvPlan *plan, int64_t lane, void *packed, void *plain);
