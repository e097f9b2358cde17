/* Selects the oneDNN implementation of a convolution. */
#pragma once
#include "conv_plan.h"

/* Memory descriptors and primitives depend on the number of images. The library chooses the
 * weights' memory order for the first number; the second number must use the same order. */
typedef struct Shape {
  dnnl_memory_desc_t x, w, bias, y;
} Shape;

typedef struct Choice { /* [0]: for tiling.images; [1]: for the last share */
  Shape shape[2];
  dnnl_primitive_desc_t desc[2];
} Choice;

/* Sets the plan's types and name. Returns dnnl_unimplemented if only reference code can compute it,
 * or if its weights need more space than planned. The caller frees the choice. */
dnnl_status_t conv_choose(ConvPlan *p, dnnl_engine_t engine, Choice *out);
void conv_choice_free(Choice *c);
/* Describes the weights of `filters` filters in their own order, [k, c / groups, kernel..]. */
dnnl_status_t conv_plain_desc(const ConvPlan *p, int64_t filters, dnnl_memory_desc_t *out);
/* Describes the slice of packed weights from filter `first` on. Fails if a slice cuts blocks. */
dnnl_status_t conv_slice_desc(const ConvPlan *p, const Choice *c, int64_t first,
                              dnnl_memory_desc_t *out);
