/* Which of the library's implementations computes a convolution. */
#pragma once
#include "conv_plan.h"

/* The number of images decides about memory descriptors and primitives; the weights' order in
 * memory is the library's choice for the first number and given for the second. */
typedef struct Shape {
  dnnl_memory_desc_t x, w, bias, y;
} Shape;

typedef struct Choice { /* [0]: of tiling.images, [1]: of the last share */
  Shape shape[2];
  dnnl_primitive_desc_t desc[2];
} Choice;

/* Sets the plan's types and name. dnnl_unimplemented: only reference code can do it, or what needs
 * more room for weights than was planned. The caller frees the choice. */
dnnl_status_t conv_choose(ConvPlan *p, dnnl_engine_t engine, Choice *out);
void conv_choice_free(Choice *c);
/* The weights of so many filters as they lie, [k, c / groups, kernel..]. */
dnnl_status_t conv_plain_desc(const ConvPlan *p, int64_t filters, dnnl_memory_desc_t *out);
/* The slice of packed weights from filter `first` on. Fails where slices are not whole blocks. */
dnnl_status_t conv_slice_desc(const ConvPlan *p, const Choice *c, int64_t first,
                              dnnl_memory_desc_t *out);
