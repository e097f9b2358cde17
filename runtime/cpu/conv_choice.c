/* Selects the oneDNN implementation of a convolution. Calls must be between dnn_enter and
 * dnn_leave.
 *
 * Note [reference code]
 * If its generated code cannot compute a convolution, oneDNN has plain loops named "ref". They are
 * about 100 times slower and meant as a definition. oneDNN lists its implementations, the fastest
 * first. We never take a reference. Nor do we take products ("gemm") of one channel each for a
 * depthwise convolution, which are as slow. If nothing else is left, loops of our own compute it:
 * conv_loops.c. */
#include "conv_choice.h"
#include <stdio.h>
#include <string.h>
#include "primitive.h"
#include "runtime/plan/conv_sizes.h"

/* ---- descriptions ---------------------------------------------------------------------------- */

/* Whether d is treated as an image of height 1: oneDNN has more generated code for images. */
static bool is_sequence(const ampc_conv *d)
{
  return d->spatial == 1;
}

/* Appends one number for each axis to the first n of `dims`. Returns their new count. */
static int add_axes(const ampc_conv *d, const int64_t *values, int64_t of_height, dnnl_dims_t dims,
                    int n)
{
  if (is_sequence(d)) dims[n++] = of_height;
  for (uint32_t i = 0; i < d->spatial; i++) dims[n++] = values[i];
  return n;
}

/* Describes weights. `any`: in the order that the library chooses; otherwise in their own order. */
static dnnl_status_t weights_desc(const ConvPlan *p, int64_t filters, bool any,
                                  dnnl_memory_desc_t *out)
{
  const ampc_conv *d = &p->desc;
  bool volume = d->spatial == 3, grouped = d->groups > 1;
  dnnl_format_tag_t plain = grouped  ? volume ? dnnl_godhwi : dnnl_gohwi
                            : volume ? dnnl_odhwi
                                     : dnnl_ohwi;
  dnnl_dims_t dims;
  int rank = 0;
  if (grouped) dims[rank++] = d->groups;
  dims[rank++] = filters / d->groups;
  dims[rank++] = d->c / d->groups;
  rank = add_axes(d, d->kernel, 1, dims, rank);
  return dnnl_memory_desc_init_by_tag(out, rank, dims, library_type(p->w_type),
                                      any ? dnnl_format_tag_any : plain);
}

dnnl_status_t conv_plain_desc(const ConvPlan *p, int64_t filters, dnnl_memory_desc_t *out)
{
  return weights_desc(p, filters, false, out);
}

/* Describes images. They are channels last in memory; the library names channels before pixels. */
static dnnl_status_t images_desc(const ampc_conv *d, int64_t n, int64_t channels,
                                 const int64_t *size, ampc_dtype type, dnnl_memory_desc_t *out)
{
  dnnl_dims_t dims = {n, channels};
  int rank = add_axes(d, size, 1, dims, 2);
  return dnnl_memory_desc_init_by_tag(out, rank, dims, library_type(type),
                                      d->spatial == 3 ? dnnl_ndhwc : dnnl_nhwc);
}

/* Makes all memory descriptors for a share of `images` images. */
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
  dnnl_dims_t stride, pad, dilation; /* dilation: elements skipped between two taps */
  int64_t left_out[AMPC_MAX_SPATIAL];
  for (uint32_t i = 0; i < d->spatial; i++) left_out[i] = d->dilation[i] - 1;
  add_axes(d, d->stride, 1, stride, 0);
  add_axes(d, d->pad, 0, pad, 0);
  add_axes(d, left_out, 0, dilation, 0);
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

/* ---- the library's list ---------------------------------------------------------------------- */

typedef struct List {
  dnnl_convolution_desc_t what; /* the iterator reads it until it is destroyed */
  dnnl_primitive_attr_t attributes;
  dnnl_primitive_desc_iterator_t at;
} List;

/* Opens the list. The caller closes it, also after a failure: no implementation, or no memory. */
static dnnl_status_t list_open(const ConvPlan *p, dnnl_engine_t engine, const Shape *s, List *out)
{
  dnnl_status_t bad = describe(p, s, &out->what);
  if (!bad) bad = dnnl_primitive_attr_create(&out->attributes);
  if (!bad)
    bad = dnnl_primitive_attr_set_scratchpad_mode(out->attributes, dnnl_scratchpad_mode_user);
  if (!bad)
    bad = dnnl_primitive_desc_iterator_create(&out->at, &out->what, out->attributes, engine, NULL);
  return bad;
}

static void list_close(List *list)
{
  if (list->at) dnnl_primitive_desc_iterator_destroy(list->at);
  dnnl_primitive_attr_destroy(list->attributes);
}

static const char *name_of(dnnl_primitive_desc_t desc)
{
  const char *name = NULL;
  dnnl_status_t bad = dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *)&name);
  return bad || !name ? "ref" : name;
}

/* Rejects slow code, see Note [reference code]. Also rejects oneDNN 2.6's 1x1 code for the gradient
 * of bf16 images if the number of filters is odd. It adds filters in pairs and reads the missing
 * one from beyond the end, so its result is wrong. */
static bool is_refused(const ConvPlan *p, dnnl_primitive_desc_t desc)
{
  const ampc_conv *d = &p->desc;
  const char *name = name_of(desc);
  bool depthwise = d->groups > 1 && d->groups == d->c && d->groups == d->k;
  bool odd = d->kind == AMPC_CONV_DATA && d->k / d->groups % 2 != 0;
  return strncmp(name, "ref", 3) == 0 || (depthwise && strstr(name, "gemm")) ||
         (odd && strncmp(name, "jit_bf16_1x1", 12) == 0);
}

dnnl_status_t conv_slice_desc(const ConvPlan *p, const Choice *c, int64_t first,
                              dnnl_memory_desc_t *out)
{
  dnnl_dims_t size = {p->tiling.slice, p->desc.c}, at = {first};
  add_axes(&p->desc, p->desc.kernel, 1, size, 2);
  *out = c->shape[0].w;
  if (p->filters == p->tiling.slice) return dnnl_success;
  return dnnl_memory_desc_init_submemory(out, &c->shape[0].w, size, at);
}

/* Whether packed weights fit their space in the workspace and can be packed slice by slice. */
static bool weights_fit(const ConvPlan *p, const Choice *c)
{
  bool weight = p->desc.kind == AMPC_CONV_WEIGHT;
  int64_t room = weight ? p->tiling.sum : p->tiling.packed;
  dnnl_memory_desc_t slice;
  if ((int64_t)dnnl_memory_desc_get_size(&c->shape[0].w) > room) return false;
  return p->filters == p->tiling.slice ||
         conv_slice_desc(p, c, p->tiling.slice, &slice) == dnnl_success;
}

/* Chooses the first implementation for the last share that takes the weights in the order of the
 * other shares. */
static dnnl_status_t choose_rest(const ConvPlan *p, dnnl_engine_t engine, Choice *c)
{
  List list = {0};
  dnnl_status_t bad = shape_init(p, p->rest, &c->shape[0].w, &c->shape[1]);
  if (!bad) bad = list_open(p, engine, &c->shape[1], &list);
  while (!bad) {
    c->desc[1] = dnnl_primitive_desc_iterator_fetch(list.at);
    if (!is_refused(p, c->desc[1])) break;
    dnnl_primitive_desc_destroy(c->desc[1]);
    c->desc[1] = NULL;
    bad = dnnl_primitive_desc_iterator_next(list.at);
  }
  list_close(&list);
  return bad;
}

/* Whether this implementation can compute all shares. */
static bool choose_this(const ConvPlan *p, dnnl_engine_t engine, Choice *c)
{
  bool weight = p->desc.kind == AMPC_CONV_WEIGHT;
  if (is_refused(p, c->desc[0])) return false;
  c->shape[0].w = *dnnl_primitive_desc_query_md(
      c->desc[0], weight ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
  return weights_fit(p, c) && choose_rest(p, engine, c) == dnnl_success;
}

/* Chooses the first usable implementation for the plan's types. */
static dnnl_status_t choose_types(ConvPlan *p, dnnl_engine_t engine, Choice *c)
{
  dnnl_memory_desc_t any;
  List list = {0};
  dnnl_status_t bad = weights_desc(p, p->filters, true, &any);
  if (!bad) bad = shape_init(p, p->tiling.images, &any, &c->shape[0]);
  if (!bad) bad = list_open(p, engine, &c->shape[0], &list);
  while (!bad) {
    c->desc[0] = dnnl_primitive_desc_iterator_fetch(list.at);
    if (choose_this(p, engine, c)) break;
    conv_choice_free(c);
    shape_init(p, p->tiling.images, &any, &c->shape[0]);
    bad = dnnl_primitive_desc_iterator_next(list.at);
  }
  list_close(&list);
  if (!bad) snprintf(p->name, sizeof p->name, "%s", name_of(c->desc[0]));
  return bad;
}

void conv_choice_free(Choice *c)
{
  for (int i = 0; i < 2; i++) dnnl_primitive_desc_destroy(c->desc[i]);
  *c = (Choice){0};
}

/* Chooses the type of both operands if they share one and the machine computes in it
 * (Note [native bf16]). Otherwise, or if oneDNN refuses that type, chooses f32. */
dnnl_status_t conv_choose(ConvPlan *p, dnnl_engine_t engine, Choice *out)
{
  const ampc_conv *d = &p->desc;
  ampc_dtype type = d->kind == AMPC_CONV_DATA ? d->y_type : d->x_type;
  if (library_takes(type) && type == (d->kind == AMPC_CONV_WEIGHT ? d->y_type : d->w_type)) {
    p->x_type = d->x_type == type ? type : AMPC_F32;
    p->w_type = d->kind == AMPC_CONV_WEIGHT ? AMPC_F32 : type;
    p->y_type = d->y_type == type ? type : AMPC_F32;
    dnnl_status_t bad = choose_types(p, engine, out);
    if (!bad || bad == dnnl_out_of_memory) return bad;
  }
  p->x_type = p->w_type = p->y_type = AMPC_F32;
  return choose_types(p, engine, out);
}
