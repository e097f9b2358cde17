/* Convolutions as oneDNN primitives, or by loops of our own. */
#include "conv_choice.h"
#include "conv_loops.h"
#include "dnn.h"
#include <stdio.h>
#include <stdlib.h>
#include "runtime/base/out_of_memory.h"
#include "runtime/plan/conv_sizes.h"

/* ---- objects --------------------------------------------------------------------------------- */

/* Makes the primitive that packs or unpacks one slice of the weights, and its memory objects. */
static dnnl_status_t make_reorder(ConvPlan *p, dnnl_engine_t engine, const Choice *c)
{
  dnnl_memory_desc_t plain, packed, next;
  dnnl_primitive_desc_t desc = NULL;
  bool weight = p->desc.kind == AMPC_CONV_WEIGHT;
  dnnl_status_t bad = conv_plain_desc(p, p->tiling.slice, &plain);
  if (!bad) bad = conv_slice_desc(p, c, 0, &packed);
  if (!bad && p->filters > p->tiling.slice) {
    bad = conv_slice_desc(p, c, p->tiling.slice, &next);
    p->slice_bytes = (next.offset0 - packed.offset0) * ampc_dtype_size(p->w_type);
  }
  if (!bad)
    bad = dnnl_reorder_primitive_desc_create(&desc, weight ? &packed : &plain, engine,
                                             weight ? &plain : &packed, engine, NULL);
  if (!bad) bad = dnnl_primitive_create(&p->reorder, desc);
  dnnl_primitive_desc_destroy(desc);
  for (int64_t i = 0; i < p->lanes && !bad; i++) {
    bad = dnnl_memory_create(&p->lane[i].plain, &plain, engine, DNNL_MEMORY_NONE);
    if (!bad) bad = dnnl_memory_create(&p->lane[i].packed, &packed, engine, DNNL_MEMORY_NONE);
  }
  if (!bad) bad = dnnl_memory_create(&p->packed, &c->shape[0].w, engine, DNNL_MEMORY_NONE);
  if (!bad) bad = dnnl_memory_create(&p->bias, &c->shape[0].bias, engine, DNNL_MEMORY_NONE);
  return bad;
}

static dnnl_status_t make_lane(ConvLane *l, dnnl_engine_t engine, const Choice *c,
                               const dnnl_memory_desc_t *scratch)
{
  dnnl_status_t bad = dnnl_stream_create(&l->stream, engine, dnnl_stream_default_flags);
  for (int i = 0; i < 2 && !bad; i++) {
    bad = dnnl_memory_create(&l->x[i], &c->shape[i].x, engine, DNNL_MEMORY_NONE);
    if (!bad) bad = dnnl_memory_create(&l->y[i], &c->shape[i].y, engine, DNNL_MEMORY_NONE);
  }
  if (!bad) bad = dnnl_memory_create(&l->w, &c->shape[0].w, engine, DNNL_MEMORY_NONE);
  if (!bad) bad = dnnl_memory_create(&l->scratch, scratch, engine, DNNL_MEMORY_NONE);
  return bad;
}

static dnnl_status_t make_objects(ConvPlan *p, dnnl_engine_t engine, const Choice *c)
{
  dnnl_memory_desc_t scratch = {0};
  dnnl_status_t bad = make_reorder(p, engine, c);
  for (int i = 0; i < 2 && !bad; i++) {
    bad = out_of_memory_near() ? dnnl_out_of_memory : dnnl_primitive_create(&p->run[i], c->desc[i]);
    const dnnl_memory_desc_t *s =
        dnnl_primitive_desc_query_md(c->desc[i], dnnl_query_scratchpad_md, 0);
    if (dnnl_memory_desc_get_size(s) >= dnnl_memory_desc_get_size(&scratch)) scratch = *s;
  }
  p->scratch = ((int64_t)dnnl_memory_desc_get_size(&scratch) + 63) / 64 * 64;
  for (int64_t i = 0; i < p->lanes && !bad; i++) bad = make_lane(&p->lane[i], engine, c, &scratch);
  return bad;
}

static dnnl_status_t use_loops(ConvPlan *p)
{
  p->x_type = p->w_type = p->y_type = AMPC_F32;
  p->loops = true;
  snprintf(p->name, sizeof p->name, "loops");
  return dnnl_success;
}

/* Makes the library's objects. If loops compute the convolution, makes none. */
static dnnl_status_t make(ConvPlan *p, dnnl_engine_t engine)
{
  Choice choice = {0};
  if (!engine) return use_loops(p);
  int threads = dnn_enter();
  bool room = !out_of_memory_near();
  dnnl_status_t bad = room ? conv_choose(p, engine, &choice) : dnnl_out_of_memory;
  if (!bad) {
    bad = make_objects(p, engine, &choice);
  } else if (bad != dnnl_out_of_memory) {
    bad = use_loops(p);
  }
  conv_choice_free(&choice);
  dnn_leave(threads);
  return bad;
}

ampc_status conv_plan_create(dnnl_engine_t engine, const ampc_conv *d, ConvPlan **out)
{
  ConvPlan *p = calloc(1, sizeof *p);
  *out = p;
  if (!p) return ampc_fail(AMPC_RUN_FAILED, "out of memory for a convolution");
  p->desc = *d;
  p->tiling = ampc_conv_tiling(d, false);
  p->filters = d->kind == AMPC_CONV_WEIGHT ? p->tiling.slice : d->k;
  p->rest = d->n - (p->tiling.shares - 1) * p->tiling.images;
  p->lanes = p->tiling.lanes;
  p->lane = calloc((size_t)p->lanes, sizeof *p->lane);
  dnnl_status_t bad = p->lane ? make(p, engine) : dnnl_out_of_memory;
  if (!bad) return AMPC_OK;
  conv_plan_free(p);
  *out = NULL;
  if (bad == dnnl_out_of_memory)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for a convolution");
  return ampc_fail(AMPC_RUN_FAILED,
                   "oneDNN cannot do a convolution of %lld images of %lld channels and %lld pixels "
                   "by %lld filters of %lld taps: its status is %d",
                   (long long)d->n, (long long)d->c, (long long)conv_in_pixels(d), (long long)d->k,
                   (long long)conv_taps(d), (int)bad);
}

static void free_objects(ConvPlan *p)
{
  for (int64_t i = 0; p->lane && i < p->lanes; i++) {
    ConvLane *l = &p->lane[i];
    for (int j = 0; j < 2; j++) {
      dnnl_memory_destroy(l->x[j]);
      dnnl_memory_destroy(l->y[j]);
    }
    dnnl_memory_destroy(l->w);
    dnnl_memory_destroy(l->plain);
    dnnl_memory_destroy(l->packed);
    dnnl_memory_destroy(l->scratch);
    dnnl_stream_destroy(l->stream);
  }
  for (int i = 0; i < 2; i++) dnnl_primitive_destroy(p->run[i]);
  dnnl_primitive_destroy(p->reorder);
  dnnl_memory_destroy(p->packed);
  dnnl_memory_destroy(p->bias);
}

void conv_plan_free(ConvPlan *p)
{
  if (!p) return;
  if (!p->loops) free_objects(p);
  free(p->lane);
  free(p);
}

/* ---- running --------------------------------------------------------------------------------- */

static dnnl_status_t reorder(ConvPlan *p, int64_t lane, void *plain, void *packed)
{
  bool weight = p->desc.kind == AMPC_CONV_WEIGHT;
  ConvLane *l = &p->lane[lane];
  dnnl_status_t bad = dnnl_memory_set_data_handle(l->plain, plain);
  if (!bad) bad = dnnl_memory_set_data_handle(l->packed, packed);
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, weight ? l->packed : l->plain},
                            {DNNL_ARG_TO, weight ? l->plain : l->packed}};
  int threads = dnn_enter();
  if (!bad) bad = dnnl_primitive_execute(p->reorder, l->stream, 2, args);
  dnn_leave(threads);
  return bad;
}

dnnl_status_t conv_plan_pack(ConvPlan *p, int64_t slice, const void *plain, char *packed)
{
  int64_t n = p->tiling.slice;
  if (!p->loops) return reorder(p, 0, (void *)plain, packed + slice * p->slice_bytes);
  conv_loops_pack(&p->desc, slice * n, n, plain, (float *)(void *)packed);
  return dnnl_success;
}

dnnl_status_t conv_plan_operands(ConvPlan *p, void *packed, const void *bias)
{
  p->packed_at = packed;
  p->bias_at = bias;
  if (p->loops) return dnnl_success;
  dnnl_status_t bad = dnnl_memory_set_data_handle(p->packed, packed);
  return bad ? bad : dnnl_memory_set_data_handle(p->bias, (void *)bias);
}

dnnl_status_t conv_plan_unpack(ConvPlan *p, int64_t lane, void *packed, void *plain)
{
  if (!p->loops) return reorder(p, lane, plain, packed);
  conv_loops_unpack(&p->desc, p->tiling.slice, packed, plain);
  return dnnl_success;
}

dnnl_status_t conv_plan_run(ConvPlan *p, int64_t lane, int64_t images, const ConvOperands *at)
{
  static const int arguments[][3] = {
      [AMPC_CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
      [AMPC_CONV_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
      [AMPC_CONV_WEIGHT] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
  const int *argument = arguments[p->desc.kind];
  bool weight = p->desc.kind == AMPC_CONV_WEIGHT;
  if (p->loops) {
    conv_loops_run(
        &p->desc, images, p->filters,
        &(ConvOperands){
            .x = at->x, .w = weight ? at->w : p->packed_at, .bias = p->bias_at, .y = at->y});
    return dnnl_success;
  }
  int which = images == p->tiling.images ? 0 : 1;
  ConvLane *l = &p->lane[lane];
  dnnl_status_t bad = dnnl_memory_set_data_handle(l->x[which], at->x);
  if (!bad) bad = dnnl_memory_set_data_handle(l->y[which], at->y);
  if (!bad) bad = dnnl_memory_set_data_handle(l->scratch, at->workspace);
  if (!bad && weight) bad = dnnl_memory_set_data_handle(l->w, at->w);
  dnnl_exec_arg_t args[] = {{argument[0], l->x[which]},
                            {argument[1], weight ? l->w : p->packed},
                            {argument[2], l->y[which]},
                            {DNNL_ARG_SCRATCHPAD, l->scratch},
                            {DNNL_ARG_BIAS, p->bias}};
  int n = p->desc.has_bias ? 5 : 4;
  int threads = dnn_enter();
  if (!bad) bad = dnnl_primitive_execute(p->run[which], l->stream, n, args);
  dnn_leave(threads);
  return bad;
}
