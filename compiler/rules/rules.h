/* What the shape rules of several files share. */
#pragma once
#include "compiler/graph/ops.h"

bool rule_need_float(Compile *c, const Node *n, uint32_t i);
bool rule_set_dims(Compile *c, Node *n, uint32_t rank, const int64_t *dim);
void rule_copy_dims(Node *n, const Node *from);
/* Dims of n: inputs [first, end) broadcast with each other; E303 when they do not fit. */
bool rule_broadcast(Compile *c, Node *n, uint32_t first, uint32_t end);

/* ---- images: shape_image.c ----------------------------------------------------------------------
 */

/* Attributes of conv2d and its gradients, in the order of the table: each along h, along w. */
enum { CONV_stride, CONV_pad = 2, CONV_dilation = 4, CONV_groups = 6, CONV_size = 7 };
/* Of pools; max pools have dilations where average pools say what they divide by. */
enum {
  POOL_kernel,
  POOL_stride = 2,
  POOL_pad = 4,
  POOL_dilation = 6,
  POOL_count_pad = 6,
  POOL_divisor = 7,
  POOL_size = 8
};
/* Parts in which `rows` elements of a channel are reduced, see Note [channels] in ops.def. */
int64_t rule_channel_parts(int64_t rows, int64_t channels);
