/* What the rules of the op table share, and what passes need of them. */
#pragma once
#include "ops.h"

/* ---- types ----------------------------------------------------------------------------------- */

/* Ordinary promotion of inputs [first, end) of n, as torch.result_type: tensors with dimensions
 * decide, then tensors without, then numbers; a later class matters only when its kind (bool,
 * integer, float) is higher. */
DType rule_promote(Compile *c, const Node *n, uint32_t first, uint32_t end);
/* The inputs that meet in one expression and must have one type: [*first, result). */
uint32_t rule_mixed_inputs(const Node *n, uint32_t *first);
/* The type they meet in. For most ops that is the type of the result too; comparisons give bool. */
DType rule_common_type(Compile *c, const Node *n);
/* Ops such as exp and sqrt, whose result for integers is a float. */
bool rule_makes_float(OpKind op);

/* ---- shapes ---------------------------------------------------------------------------------- */

bool rule_need_float(Compile *c, const Node *n, uint32_t i);
bool rule_set_dims(Compile *c, Node *n, uint32_t rank, const int64_t *dim);
void rule_copy_dims(Node *n, const Node *from);
/* Dims of n: inputs [first, end) broadcast with each other; E303 when they do not fit. */
bool rule_broadcast(Compile *c, Node *n, uint32_t first, uint32_t end);
