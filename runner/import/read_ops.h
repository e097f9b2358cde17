/* Functions that read the nodes of one op. */
#pragma once
#include "read.h"

/* Reads the node at work. */
void read_op(Reader *r);

#define READ(op, function, file) void function(Reader *r);
#include "read_ops.def"

/* ---- for several files ---- */

/* Reads a node of the pattern of a drawn dropout: Less, Cast, Div, Mul. False: it is another one.
 */
bool read_drawn(Reader *r);
/* Computes the node if its inputs are small integer tensors, or weights of recurrent layers. False:
 * they are not. */
bool read_folded(Reader *r);
/* A number whose elements the node has moved is one again, with the sizes of the result. */
void keep_number(Reader *r);
/* Returns a tensor of n axes that amp import makes. The caller writes its `bytes` bytes. */
Value *made_tensor(Reader *r, int32_t type, size_t bytes, const int64_t *dims, size_t n);
/* Reads a list of integers: input i, or in older versions an attribute. False: it is absent; or
 * computed, which refuses the node. */
bool read_list(Reader *r, size_t i, const char *name, Item **at, uint32_t *n);
/* Reads the axes of the node at work, which are numbers. There is room for READ_RANK of them. */
bool read_axes(Reader *r, size_t i, Item **at, uint32_t *n);
bool is_weight(const Value *v);             /* a tensor of the file that trains */
bool is_all(const Value *v, double number); /* a constant or buffer; all elements are the number */
bool is_zero(const Value *v);               /* PyTorch writes zeros for a layer without a bias */
/* Makes the layer of the node at work from its weights, as ONNX has them; weights[2] may be NULL.
 * The layer's path is that of the module around it; further ones of the module are called cells_l1
 * .. */
const char *cells_layer(Reader *r, const char *stem, const char *made, Value *const *weights);

/* ---- inline.c ---- */
/* Reads the node as a call of a function of ops.amp. False: there is none for the op. */
bool read_prelude(Reader *r);
/* The code that a function of the prelude returns. The first n parameters are given; others are
 * inputs and attributes of the node. NULL after refusing. */
const char *call_prelude(Reader *r, const char *function, const char *const *given, uint32_t n);
uint32_t n_results(Reader *r); /* up to the last one that is needed; at least 1 */
ampc_status read_scan(Reader *r);
ampc_status read_inner(Reader *r,
                       const OnnxGraph *g); /* tensors and nodes of a graph of the node */

/* ---- read_patterns.c: ops of several nodes. False: the node is not the last one of such an op
 * ---- */
bool read_attention_product(Reader *r);
bool read_silu(Reader *r);
