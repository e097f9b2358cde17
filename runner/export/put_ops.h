/* The functions for ops that are more than one op of ONNX, or that have attributes. */
#pragma once
#include <math.h>
#include <stdio.h>
#include "export.h"

/* The type in which ONNX computes values of a type */
DType put_type(DType type);
/* Returns ONNX's op of the same meaning; NULL if there is none: onnx.def. */
const char *onnx_same(OpKind op);

/* Each returns the name of the node's value, or NULL after a message. */
#define PUT(op, put, file) const char *put(Export *e, const Node *n);
#include "put_ops.def"
#undef PUT
