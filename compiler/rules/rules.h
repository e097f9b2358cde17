/* What the shape rules of several files share.
 *
 * A rule gets a node whose inputs and attributes are set. It sets rank, dims and dtype (and `weak`
 * and `layout` where the default is wrong) and returns true, or reports the user's mistake and
 * returns false; then the node is not added. */
#pragma once
#include "compiler/graph/ops.h"

/* E406 unless input i is of a float type. */
bool rule_need_float(Compile *c, const Node *n, uint32_t i);
/* E311 for a tensor of rank 0: n works along an axis of input 0. */
bool rule_need_axis(Compile *c, const Node *n);
/* E311 when there are more axes than MAX_RANK, an axis of size 0 or too many elements. */
bool rule_set_dims(Compile *c, Node *n, uint32_t rank, const int64_t *dim);
/* The dims of another node, in this type. Nothing is checked, since those were; always true. */
bool rule_like(Node *n, const Node *from, DType dtype);

/* ---- numbers: constants.c ---- */

/* E402 or W408 where a number among the operands of n does not stay what the program says. */
void rule_check_numbers(Compile *c, const Node *n);
/* Whether n is a literal of the program, and its value. */
bool rule_literal(const Node *n, double *out);
/* v as a value of a float type: rounded to nearest, ties to even; infinite beyond its range. */
double rule_rounded(DType d, double v);
/* x^e with a literal e such as 2 or 0.5, as products, quotients or a root; 0: n stays as it is. */
Value rule_simple_power(Compile *c, const Node *n);

/* ---- products: gradient_product.c ---- */

/* Operand v of matmul as [batch, rows, columns], with the leading axes of the whole product:
 * [5, 1, 2, 3] times [4, 3, 6] has lead [5, 4], so the right operand becomes [20, 3, 6]. A vector
 * on the left is one row. */
Value rule_as_batch(Compile *c, const Cursor *at, Value v, const int64_t *lead, uint32_t n_lead);

/* ---- ops whose kernels multiply in tiles (T_tiles) ---- */

/* Whether the device's library may compute n: 16 bits, for a GPU, and no numbers are added to the
 * first product. */
bool rule_by_library(Compile *c, const Node *n);

/* ---- images: shape_image.c ---- */

typedef struct Window { /* of a convolution or pool, along one axis */
  int64_t kernel, stride, pad, dilation;
  bool ceil; /* the last window may reach beyond the padding */
} Window;
/* By the attributes stride0, pad0, dil0 of n for its first axis, stride1, ... for the next. */
Window rule_window(const Node *n, uint32_t axis, int64_t kernel);
/* The attributes for the size of an image or kernel along one of its `spatial` axes: "h", "kh". */
const char *rule_image_size(uint32_t spatial, uint32_t axis);
const char *rule_kernel_size(uint32_t spatial, uint32_t axis);
