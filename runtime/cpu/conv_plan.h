/* One convolution: oneDNN objects that are made once and then only run, or loops of our own. */
#pragma once
#include <oneapi/dnnl/dnnl.h>
#include "runtime/plan/conv_tiling.h"
#include "cpu.h"

/* Objects for one thread at a time. */
typedef struct ConvLane {
  dnnl_stream_t stream;
  dnnl_memory_t x[2], w, y[2], scratch; /* [0]: for tiling.images; [1]: for the last share */
  dnnl_memory_t plain, packed;          /* of a slice */
} ConvLane;

typedef struct ConvPlan {
  ampc_conv desc;
  ConvTiling tiling;
  ampc_dtype x_type, w_type, y_type; /* types of its operands: f32 or bf16 */
  char name[48];                     /* of the implementation: the library's name, or "loops" */
  bool loops;                        /* computed by conv_loops.c; no library objects */
  int64_t rest;                      /* images in the last share */
  int64_t filters;                   /* filters of one primitive: all, or those of a slice */
  dnnl_primitive_t run[2], reorder;  /* reorder: a slice of w, from or to its own order */
  dnnl_memory_t packed, bias;
  void *packed_at; /* their addresses, for loops */
  const void *bias_at;
  int64_t slice_bytes; /* from a packed slice to the next */
  int64_t scratch;     /* bytes per lane; a multiple of 64 */
  int64_t lanes;
  ConvLane *lane;
} ConvPlan;

ampc_status conv_plan_create(dnnl_engine_t engine, const ampc_conv *d, ConvPlan **out);
void conv_plan_free(ConvPlan *plan);
/* Call before the shares run, not for WEIGHT: packs a slice of the weights. */
dnnl_status_t conv_plan_pack(ConvPlan *plan, int64_t slice, const void *plain, char *packed);
/* Call after packing: sets the addresses of all weights and of the bias. */
dnnl_status_t conv_plan_operands(ConvPlan *plan, void *packed, const void *bias);
/* Runs one share. `w`: the destination of a weight gradient, in the library's order; otherwise
 * ignored. The workspace is the library's scratch space. */
dnnl_status_t conv_plan_run(ConvPlan *plan, int64_t lane, int64_t images, const ConvOperands *at);
/* Restores a weight gradient, or a slice of it, to its own order. */
dnnl_status_t conv_plan_unpack(ConvPlan *plan, int64_t lane, void *packed, void *plain);
