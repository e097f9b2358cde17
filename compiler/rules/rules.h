/* What the shape rules of several files share. */
#pragma once
#include "ops.h"

bool rule_need_float(Compile *c, const Node *n, uint32_t i);
bool rule_set_dims(Compile *c, Node *n, uint32_t rank, const int64_t *dim);
void rule_copy_dims(Node *n, const Node *from);
/* Dims of n: inputs [first, end) broadcast with each other; E303 when they do not fit. */
bool rule_broadcast(Compile *c, Node *n, uint32_t first, uint32_t end);
