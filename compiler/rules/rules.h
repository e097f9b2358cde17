/* What the shape rules of several files share.
 *
 * A shape rule receives a node whose inputs and attributes are set. It sets rank, dims and dtype
 * (and `weak` and `layout` if their defaults are wrong) and returns true. Or it reports the user's
 * mistake and returns false; then the node is not added. */
#pragma once
#include "compiler/graph/ops.h"

/* E406 unless input i has a float type. */
bool rule_need_float(Compile *c, const Node *n, uint32_t i);
/* E311 if input 0 has rank 0, because n works along one of its axes. */
bool rule_need_axis(Compile *c, const Node *n);
/* E311 if there are more than MAX_RANK axes, an axis of size 0 or too many elements. */
bool rule_set_dims(Compile *c, Node *n, uint32_t rank, const int64_t *dim);
/* Copies the dims of another node and sets this type. Always true: the dims have been checked
 * already. */
bool rule_like(Node *n, const Node *from, DType dtype);

/* ---- numbers: constants.c ---- */

/* E402 or W408 if a number among the operands of n changes in the type that it is converted to. */
void rule_check_numbers(Compile *c, const Node *n);
/* True if n is a literal of the program; then `out` is its value. */
bool rule_literal(const Node *n, double *out);
/* v in a float type: rounded to nearest, ties to even; infinite beyond the range of the type. */
double rule_rounded(DType d, double v);
/* Replaces x^e by products, quotients or a root if e is a literal such as 2 or 0.5; 0: n remains a
 * power. */
Value rule_simple_power(Compile *c, const Node *n);

/* ---- products: gradient_product.c ---- */

/* Operand v of matmul as [batch, rows, columns], expanded to the leading axes of the whole product.
 * [5, 1, 2, 3] times [4, 3, 6] has lead [5, 4], so the right operand becomes [20, 3, 6]. A vector
 * on the left becomes a matrix of one row. */
Value rule_as_batch(Compile *c, const Cursor *at, Value v, const int64_t *lead, uint32_t n_lead);

/* ---- ops whose kernels multiply in tiles (T_tiles) ---- */

/* True if the GPU's vendor library may compute n: its operands have 16 bits, and no numbers are
 * added to the first product. */
bool rule_by_library(Compile *c, const Node *n);

/* ---- images: shape_image.c ---- */

typedef struct Window { /* of a convolution or pool, along one axis */
  int64_t kernel, stride, pad, dilation;
  bool ceil; /* the last window may extend beyond the padding */
} Window;
/* Reads the attributes of n: stride0, pad0, dil0 for the first axis, stride1, ... for the next. */
Window rule_window(const Node *n, uint32_t axis, int64_t kernel);
/* The name of the attribute for the size of an image or kernel along one of its `spatial` axes:
 * "h", "kh". */
const char *rule_image_size(uint32_t spatial, uint32_t axis);
const char *rule_kernel_size(uint32_t spatial, uint32_t axis);
