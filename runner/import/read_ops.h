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
/* Reads a node that selects or joins rows of the weights of a recurrent layer. False: it is another
 * one. */
bool read_rows(Reader *r);
/* Returns a tensor of n axes that amp import makes. The caller writes its `bytes` bytes. */
Value *made_tensor(Reader *r, int32_t type, size_t bytes, const int64_t *dims, size_t n);
void give_rows(Reader *r, const Value *made); /* makes such a tensor result 0 */
/* Reads a node that reshapes, flips or transposes a small matrix of known integers. False: it is
 * another one. */
bool read_matrix(Reader *r);
/* Sets type and shape of result 0 where they follow from the inputs. */
void read_types(Reader *r, bool elementwise);
/* States the shape of an image with other numbers of pixels. channels 0: those of x */
void give_image_shape(Reader *r, const Value *x, int64_t channels);
/* The axis of a tensor, from 0 on. -1: the rank is unknown, or there is no such axis. */
int64_t axis_of(const Value *x, int64_t axis);
/* Reads the axes of the node at work: input i, or in older versions an attribute. */
bool read_axes(Reader *r, size_t i, Item **at, uint32_t *n);
bool is_weight(const Value *v);             /* a tensor of the file that trains */
bool is_all(const Value *v, double number); /* a constant or buffer; all elements are the number */
bool is_zero(const Value *v);               /* PyTorch writes zeros for a layer without a bias */
/* An index along an axis, without numbers below 0. `computed`: also if it is no constant */
const char *index_ref(Reader *r, const Value *index, int64_t size, bool computed);
/* Whether a result but the first one is needed. */
bool others_needed(Reader *r);

/* ---- read_patterns.c: ops of several nodes. False: the node is not the last one of such an op
 * ---- */
bool read_attention_product(Reader *r);
bool read_silu(Reader *r);
