/* Convolutions as oneDNN's primitives. All calls stand between dnn_enter and dnn_leave. */
#include "conv_plan.h"
#include <stdlib.h>
#include <string.h>
#include "primitive.h"
#include "runtime/plan/conv_sizes.h"

/* The number of images decides about memory descriptors and primitives; the weights' order in
 * memory is the library's choice for the first number and given for the second. */
typedef struct Shape {
  dnnl_memory_desc_t x, w, bias, y;
} Shape;

static dnnl_data_type_t library_type(ampc_dtype t)
{
  return t == AMPC_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* `any`: in an order of the library's choice; else as they lie, [k, c / groups, kernel..]. */
static dnnl_status_t weights_desc(const ConvPlan *p, bool any, dnnl_memory_desc_t *out)
{
  const ampc_conv *d = &p->desc;
  static const dnnl_format_tag_t whole[] = {dnnl_oiw, dnnl_oihw, dnnl_oidhw};
  static const dnnl_format_tag_t grouped[] = {dnnl_goiw, dnnl_goihw, dnnl_goidhw};
  dnnl_format_tag_t plain = (d->groups > 1 ? grouped : whole)[d->spatial - 1];
  dnnl_dims_t dims;
  int rank = 0;
  if (d->groups > 1) dims[rank++] = d->groups;
  dims[rank++] = p->filters / d->groups;
  dims[rank++] = d->c / d->groups;
  for (uint32_t i = 0; i < d->spatial; i++) dims[rank++] = d->kernel[i];
  return dnnl_memory_desc_init_by_tag(out, rank, dims, library_type(p->w_type),
                                      any ? dnnl_format_tag_any : plain);
}

/* Channels last, though the library names the channels before the pixels. */
static dnnl_status_t images_desc(const ampc_conv *d, int64_t n, int64_t channels,
                                 const int64_t *size, ampc_dtype type, dnnl_memory_desc_t *out)
{
  static const dnnl_format_tag_t tags[] = {dnnl_nwc, dnnl_nhwc, dnnl_ndhwc};
  dnnl_dims_t dims = {n, channels};
  memcpy(dims + 2, size, d->spatial * sizeof *size);
  return dnnl_memory_desc_init_by_tag(out, 2 + (int)d->spatial, dims, library_type(type),
                                      tags[d->spatial - 1]);
}

/* All descriptions for a share of so many images. */
static dnnl_status_t shape_init(const ConvPlan *p, int64_t images, const dnnl_memory_desc_t *w,
                                Shape *s)
{
  const ampc_conv *d = &p->desc;
  dnnl_dims_t bias = {d->k};
  s->w = *w;
  dnnl_status_t bad = images_desc(d, images, d->c, d->in, p->x_type, &s->x);
  if (!bad) bad = images_desc(d, images, p->filters, d->out, p->y_type, &s->y);
  if (!bad) bad = dnnl_memory_desc_init_by_tag(&s->bias, 1, bias, dnnl_f32, dnnl_a);
  return bad;
}

static dnnl_status_t describe(const ConvPlan *p, const Shape *s, dnnl_convolution_desc_t *out)
{
  const ampc_conv *d = &p->desc;
  dnnl_dims_t stride, pad, dilation; /* dilation: how many elements are left out */
  for (uint32_t i = 0; i < d->spatial; i++) {
    stride[i] = d->stride[i];
    pad[i] = d->pad[i];
    dilation[i] = d->dilation[i] - 1;
  }
  const dnnl_alg_kind_t direct = dnnl_convolution_direct;
  switch (d->kind) {
  case AMPC_CONV_FORWARD:
    return dnnl_dilated_convolution_forward_desc_init(out, dnnl_forward_training, direct, &s->x,
                                                      &s->w, d->has_bias ? &s->bias : NULL, &s->y,
                                                      stride, dilation, pad, pad);
  case AMPC_CONV_DATA:
    return dnnl_dilated_convolution_backward_data_desc_init(out, direct, &s->x, &s->w, &s->y,
                                                            stride, dilation, pad, pad);
  default:
    return dnnl_dilated_convolution_backward_weights_desc_init(out, direct, &s->x, &s->w, NULL,
                                                               &s->y, stride, dilation, pad, pad);
  }
}

static dnnl_status_t primitive_desc(const ConvPlan *p, dnnl_engine_t engine, const Shape *s,
                                    dnnl_primitive_desc_t *out)
{
  dnnl_convolution_desc_t d;
  dnnl_primitive_attr_t attributes = NULL;
  *out = NULL;
  dnnl_status_t bad = describe(p, s, &d);
  if (!bad) bad = dnnl_primitive_attr_create(&attributes);
  if (!bad) bad = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
  if (!bad) bad = dnnl_primitive_desc_create(out, &d, attributes, engine, NULL);
  dnnl_primitive_attr_destroy(attributes);
  return bad;
}

/* ---- the choice of primitives ---------------------------------------------------------------- */

typedef struct Choice {
  Shape shape[2];
  dnnl_primitive_desc_t desc[2];
} Choice;

static void choice_free(Choice *c)
{
  for (int i = 0; i < 2; i++) dnnl_primitive_desc_destroy(c->desc[i]);
  *c = (Choice){0};
}

/* Both primitives must agree on the weights' order, which must fit its room in the workspace. */
static dnnl_status_t choose_order(const ConvPlan *p, dnnl_engine_t engine, bool any, Choice *c)
{
  bool weight = p->desc.kind == AMPC_CONV_WEIGHT;
  int64_t images[2] = {p->tiling.images, p->rest};
  dnnl_memory_desc_t w;
  dnnl_status_t bad = weights_desc(p, any, &w);
  for (int i = 0; i < 2 && !bad; i++) {
    bad = shape_init(p, images[i], &w, &c->shape[i]);
    if (!bad) bad = primitive_desc(p, engine, &c->shape[i], &c->desc[i]);
    if (bad) break;
    w = *dnnl_primitive_desc_query_md(
        c->desc[i], weight ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    c->shape[i].w = w;
  }
  int64_t room = weight ? p->tiling.sum : p->tiling.packed;
  if (!bad && (int64_t)dnnl_memory_desc_get_size(&w) > room) bad = dnnl_unimplemented;
  if (bad) choice_free(c);
  return bad;
}

/* Note [native bf16]: all operands must be bf16. */
static bool is_native(const ampc_conv *d)
{
  bool x = d->kind == AMPC_CONV_DATA || d->x_type == AMPC_BF16;
  bool w = d->kind == AMPC_CONV_WEIGHT || d->w_type == AMPC_BF16;
  bool y = d->kind == AMPC_CONV_FORWARD || d->y_type == AMPC_BF16;
  return x && w && y && has_native_bf16();
}

/* bf16 where the machine computes with it, else f32. The library's own order of weights is the
 * quickest; where it does not fit the room that was planned, the plain one must do. */
static dnnl_status_t choose(ConvPlan *p, dnnl_engine_t engine, Choice *c)
{
  const ampc_conv *d = &p->desc;
  p->x_type = p->w_type = p->y_type = AMPC_F32;
  if (is_native(d)) {
    p->x_type = d->x_type == AMPC_BF16 ? AMPC_BF16 : AMPC_F32;
    p->w_type = d->kind == AMPC_CONV_WEIGHT ? AMPC_F32 : AMPC_BF16;
    p->y_type = d->y_type == AMPC_BF16 ? AMPC_BF16 : AMPC_F32;
    if (choose_order(p, engine, true, c) == dnnl_success) return dnnl_success;
    p->x_type = p->w_type = p->y_type = AMPC_F32;
  }
  dnnl_status_t bad = choose_order(p, engine, true, c);
  return bad ? choose_order(p, engine, false, c) : bad;
}

/* ---- objects --------------------------------------------------------------------------------- */

/* The slice of packed weights from filter `first` on. Slices are whole blocks of the library's. */
static dnnl_status_t slice_desc(const ConvPlan *p, const Choice *c, int64_t first,
                                dnnl_memory_desc_t *out)
{
  dnnl_dims_t size = {p->tiling.slice, p->desc.c}, at = {first};
  memcpy(size + 2, p->desc.kernel, p->desc.spatial * sizeof *size);
  *out = c->shape[0].w;
  if (p->filters == p->tiling.slice) return dnnl_success;
  return dnnl_memory_desc_init_submemory(out, &c->shape[0].w, size, at);
}

static dnnl_status_t plain_desc(const ConvPlan *p, dnnl_memory_desc_t *out)
{
  ConvPlan slice = *p;
  slice.filters = p->tiling.slice;
  return weights_desc(&slice, false, out);
}

/* The primitive between plain and packed weights of one slice, and its memory objects. */
static dnnl_status_t make_reorder(ConvPlan *p, dnnl_engine_t engine, const Choice *c)
{
  dnnl_memory_desc_t plain, packed, next;
  dnnl_primitive_desc_t desc = NULL;
  bool weight = p->desc.kind == AMPC_CONV_WEIGHT;
  dnnl_status_t bad = plain_desc(p, &plain);
  if (!bad) bad = slice_desc(p, c, 0, &packed);
  if (!bad && p->filters > p->tiling.slice) {
    bad = slice_desc(p, c, p->tiling.slice, &next);
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
    bad = dnnl_primitive_create(&p->run[i], c->desc[i]);
    const dnnl_memory_desc_t *s =
        dnnl_primitive_desc_query_md(c->desc[i], dnnl_query_scratchpad_md, 0);
    if (dnnl_memory_desc_get_size(s) >= dnnl_memory_desc_get_size(&scratch)) scratch = *s;
  }
  p->scratch = ((int64_t)dnnl_memory_desc_get_size(&scratch) + 63) / 64 * 64;
  for (int64_t i = 0; i < p->lanes && !bad; i++) bad = make_lane(&p->lane[i], engine, c, &scratch);
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
  Choice choice = {0};
  dnnl_status_t bad = p->lane ? choose(p, engine, &choice) : dnnl_out_of_memory;
  if (!bad) bad = make_objects(p, engine, &choice);
  choice_free(&choice);
  if (!bad) return AMPC_OK;
  conv_plan_free(p);
  *out = NULL;
  return ampc_fail(AMPC_RUN_FAILED,
                   "oneDNN cannot do a convolution of %lld images of %lld channels and %lld pixels "
                   "by %lld filters of %lld taps: its status is %d",
                   (long long)d->n, (long long)d->c, (long long)conv_in_pixels(d), (long long)d->k,
                   (long long)conv_taps(d), (int)bad);
}

void conv_plan_free(ConvPlan *p)
{
  if (!p) return;
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
  return bad ? bad : dnnl_primitive_execute(p->reorder, l->stream, 2, args);
}

dnnl_status_t conv_plan_pack(ConvPlan *p, int64_t slice, const void *plain, char *packed)
{
  return reorder(p, 0, (void *)plain, packed + slice * p->slice_bytes);
}

dnnl_status_t conv_plan_operands(ConvPlan *p, void *packed, const void *bias)
{
  dnnl_status_t bad = dnnl_memory_set_data_handle(p->packed, packed);
  return bad ? bad : dnnl_memory_set_data_handle(p->bias, (void *)bias);
}

dnnl_status_t conv_plan_unpack(ConvPlan *p, int64_t lane, void *packed, void *plain)
{
  return reorder(p, lane, plain, packed);
}

dnnl_status_t conv_plan_run(ConvPlan *p, int64_t lane, int64_t images, void *x, void *w, void *y,
                            void *scratch)
{
  static const int arguments[][3] = {
      [AMPC_CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
      [AMPC_CONV_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
      [AMPC_CONV_WEIGHT] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
  const int *argument = arguments[p->desc.kind];
  bool weight = p->desc.kind == AMPC_CONV_WEIGHT;
  int which = images == p->tiling.images ? 0 : 1;
  ConvLane *l = &p->lane[lane];
  dnnl_status_t bad = dnnl_memory_set_data_handle(l->x[which], x);
  if (!bad) bad = dnnl_memory_set_data_handle(l->y[which], y);
  if (!bad) bad = dnnl_memory_set_data_handle(l->scratch, scratch);
  if (!bad && weight) bad = dnnl_memory_set_data_handle(l->w, w);
  dnnl_exec_arg_t args[] = {{argument[0], l->x[which]},
                            {argument[1], weight ? l->w : p->packed},
                            {argument[2], l->y[which]},
                            {DNNL_ARG_SCRATCHPAD, l->scratch},
                            {DNNL_ARG_BIAS, p->bias}};
  int n = p->desc.has_bias ? 5 : 4;
  return bad ? bad : dnnl_primitive_execute(p->run[which], l->stream, n, args);
}
