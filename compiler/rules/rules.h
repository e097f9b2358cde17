/* Functions that the rules of several files use.
 *
 * A shape rule receives a node whose inputs and attributes are set. It sets rank, dims and dtype
 * (and `weak` and `layout` if their defaults are wrong) and returns true. If the user made a
 * mistake, it reports that and returns false; the node is not added. */
#pragma once
#include "compiler/graph/ops.h"

/* Reports E406 unless input i has a float type. */
bool rule_need_float(Compile *c, const Node *n, uint32_t i);
/* Reports E311 if input 0 has rank 0, because n works along one of its axes. */
bool rule_need_axis(Compile *c, const Node *n);
/* Sets n's dims. Reports E311 for more than MAX_RANK axes, an axis of size 0, too many elements. */
bool rule_set_dims(Compile *c, Node *n, uint32_t rank, const int64_t *dim);
/* Copies the dims of `from` and sets this type. Always true: the dims have been checked already. */
bool rule_like(Node *n, const Node *from, DType dtype);
/* Returns the first variable in the text of n, for the help of a message: "x" for `fc(relu(x))` and
 * `x.view(-1)`. Node.name may be the name of another function's variable. */
const char *rule_variable(Compile *c, const Node *n);

/* ---- numbers: constants.c ---- */

/* Reports E402 or W408 if conversion to an op's type makes a number operand infinite or 0. */
void rule_check_numbers(Compile *c, const Node *n);
/* False if a number operand becomes infinite or 0 in the type of n. */
bool rule_numbers_fit(Compile *c, const Node *n);
/* True if n is a literal of the program; writes its value to `out`. */
bool rule_literal(const Node *n, double *out);
/* Rounds v to float type d: to nearest, ties to even; infinite beyond the range of d. */
double rule_rounded(DType d, double v);
/* Replaces a power x^e by products, quotients or a root if e is a literal such as 2 or 0.5. Returns
 * value 0 if n must remain a power. */
Value rule_simple_power(Compile *c, const Node *n);

/* ---- products: gradient_product.c ---- */

/* Returns operand v of matmul as [batch, rows, columns], expanded to the leading axes of the
 * product. [5, 1, 2, 3] times [4, 3, 6] has lead [5, 4], so the right operand becomes [20, 3, 6]. A
 * vector on the left becomes a matrix of one row. */
Value rule_as_batch(Compile *c, const Cursor *at, Value v, const int64_t *lead, uint32_t n_lead);

/* ---- ops whose kernels multiply in tiles (T_tiles) ---- */

/* True if the GPU's vendor library may compute n: its operands have 16 bits, and no numbers are
 * added to the first product. */
bool rule_by_library(Compile *c, const Node *n);

/* ---- images: shape_image.c ---- */

/* The windows of a convolution or pool along one axis. */
typedef struct Window {
  int64_t kernel, stride, pad, dilation;
  bool ceil; /* the last window may extend beyond the padding */
} Window;
/* Reads n's attributes for an image axis: stride0, pad0, dil0 for axis 0, stride1, .. for axis
 * 1. */
Window rule_window(const Node *n, uint32_t axis, int64_t kernel);
/* Return the attribute that holds the size of an image or kernel along an axis: "h", "kh". */
const char *rule_image_size(uint32_t spatial, uint32_t axis);
const char *rule_kernel_size(uint32_t spatial, uint32_t axis);
