/* One convolution: oneDNN objects that are made once and then only run, or loops of our own.
 *
 * A share is some images of the batch, which one call computes: Note [shares] in conv.c. A lane is
 * a part of a pool task that has its own objects and space; one thread runs it. Plain weights have
 * the order of ampc_conv; packed weights have the order that the library or our loops need. */
#pragma once
#include <oneapi/dnnl/dnnl.h>
#include "runtime/plan/conv_tiling.h"
#include "cpu.h"

/* The objects of a lane. */
typedef struct ConvLane {
  dnnl_stream_t stream;
  dnnl_memory_t x[2], w, y[2], scratch; /* [0]: for tiling.images; [1]: for the last share */
  dnnl_memory_t plain, packed;          /* a slice of the weights */
} ConvLane;

typedef struct ConvPlan {
  ampc_conv desc;
  ConvTiling tiling;
  ampc_dtype x_type, w_type, y_type; /* types of its operands: f32 or bf16 */
  char name[48];                    /* name of the implementation: the library's name, or "loops" */
  bool loops;                       /* computed by conv_loops.c; no library objects */
  int64_t rest;                     /* images in the last share */
  int64_t filters;                  /* filters of one primitive: all, or only a slice */
  dnnl_primitive_t run[2], reorder; /* reorder: packs a slice of w; WEIGHT: unpacks one */
  dnnl_memory_t packed, bias;
  void *packed_at; /* addresses of `packed` and `bias`, for loops */
  const void *bias_at;
  int64_t slice_bytes; /* bytes from one packed slice to the next */
  int64_t scratch;     /* bytes per lane; a multiple of 64 */
  int64_t lanes;
  ConvLane *lane;
} ConvPlan;

/* `engine`: NULL for loops, without oneDNN. */
ampc_status conv_plan_create(dnnl_engine_t engine, const ampc_conv *d, ConvPlan **out);
void conv_plan_free(ConvPlan *plan);
/* Packs a slice of the weights. Call it for all slices before the first share runs, except for a
 * weight gradient. */
dnnl_status_t conv_plan_pack(ConvPlan *plan, int64_t slice, const void *plain, char *packed);
/* Sets the addresses of the packed weights and of the bias. Call it after packing. */
dnnl_status_t conv_plan_operands(ConvPlan *plan, void *packed, const void *bias);
/* Computes one share of `images` images. at->w: where a packed weight gradient is written;
 * otherwise ignored. at->workspace: the library's scratch space. */
dnnl_status_t conv_plan_run(ConvPlan *plan, int64_t lane, int64_t images, const ConvOperands *at);
/* Unpacks a weight gradient, or a slice of it. */
dnnl_status_t conv_plan_unpack(ConvPlan *plan, int64_t lane, void *packed, void *plain);
