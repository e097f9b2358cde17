/* Faults of real versions of cuDNN on the GPUs that have them: how calls of attention go wrong. The
 * version is MOCK_DNN_VERSION, the GPU MOCK_CUDA_ARCH. */
#include "dnn.h"

/* The shape of attention, read from its graph. */
typedef struct Shape {
  int64_t queries, keys, width, value_width;
  bool backward, causal;
  bool masks, shared_row, one_key; /* masks: by tensors; of one row for all queries, of one key */
  bool lengths;                    /* scores are cut to the lengths of each image */
} Shape;

static bool part_of_a_tile(const Shape *s)
{
  return s->keys % 128 != 0 && !s->lengths;
}

static bool half_a_tile(const Shape *s)
{
  return s->keys % 128 == 64 && (!s->causal || s->queries > s->keys);
}

static bool lengths_and_mask(const Shape *s)
{
  return s->lengths && s->masks;
}

static bool one_query(const Shape *s)
{
  return s->queries == 1;
}

static bool shared_row(const Shape *s)
{
  return s->shared_row;
}

static bool one_key(const Shape *s)
{
  return s->one_key;
}

static bool unlike_widths(const Shape *s)
{
  return s->width != s->value_width && s->width >= 128 && s->value_width >= 128 &&
         !(s->width == 192 && s->value_width == 128);
}

/* Faults: the versions from `from`, below `before`; the range of capabilities; backward only. */
static const struct {
  long from, before;
  int oldest, newest;
  bool backward;
  bool (*when)(const Shape *s);
  DnnHarm harm;
} faults[] = {
    {0, 999999, 0, 999, true, one_query, HARM_nan},
    {91000, 91002, 0, 999, false, NULL, HARM_nan},
    {0, 91501, 0, 999, true, part_of_a_tile, HARM_breaks_in_graphs},
    {91002, 91501, 0, 999, true, lengths_and_mask, HARM_nan},
    {0, 999999, 0, 999, true, shared_row, HARM_nan},
    {0, 999999, 0, 999, true, one_key, HARM_nan},
    {0, 91800, 100, 109, true, NULL, HARM_unsteady},
    {0, 92600, 90, 99, true, half_a_tile, HARM_nan},
    {91100, 999999, 90, 99, true, unlike_widths, HARM_nan},
};

/* Reads the shape of attention. Returns false if the graph is another one. Forward has two
 * products, backward has five. */
static bool shape_of(const Steps *s, Shape *out)
{
  int products = 0;
  *out = (Shape){.queries = 0};
  for (int i = 0; i < s->n_operations; i++) {
    const Operation *o = &s->operation[i];
    const Tensor *x = &s->tensor[o->x], *b = o->b < 0 ? NULL : &s->tensor[o->b];
    bool pointwise = o->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
    bool joins = pointwise && (o->mode == CUDNN_POINTWISE_MUL || o->mode == CUDNN_POINTWISE_ADD);
    const Tensor *y = &s->tensor[o->y];
    if (pointwise && o->mode == CUDNN_POINTWISE_CMP_GE) out->causal = true;
    if (pointwise && o->mode == CUDNN_POINTWISE_CMP_LT) out->lengths = true;
    if (joins && x->is_virtual && !b->is_virtual && !b->by_value) {
      out->masks = true;
      out->shared_row |= b->dim[2] == 1 && y->dim[2] > 1;
      out->one_key |= b->dim[3] == 1 && y->dim[3] > 1;
    }
    if (o->kind != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) continue;
    if (products == 0) out->queries = x->dim[2], out->width = x->dim[3], out->keys = b->dim[3];
    if (products == 1) out->value_width = b->dim[3];
    products++;
  }
  out->backward = products == 5;
  return products == 2 || products == 5;
}

DnnHarm dnn_harm(const Steps *steps)
{
  Shape s;
  long version = (long)cudnnGetVersion();
  int gpu = mock_capability();
  for (size_t i = 0; shape_of(steps, &s) && i < sizeof faults / sizeof *faults; i++)
    if (version >= faults[i].from && version < faults[i].before && gpu >= faults[i].oldest &&
        gpu <= faults[i].newest && (s.backward || !faults[i].backward) &&
        (!faults[i].when || faults[i].when(&s)))
      return faults[i].harm;
  return HARM_none;
}
