/* The ops that the graph itself consists of: parameters, numbers, casts, views, loops. These
 * functions create their nodes and answer questions about them, so that few files name the ops. */
#pragma once
#include "ir.h"

/* ---- nodes that are made often ---- */

Value ir_unary(Compile *c, const Cursor *at, OpKind op, Value x);
Value ir_binary(Compile *c, const Cursor *at, OpKind op, Value a, Value b);
Value ir_number(Compile *c, const Cursor *at, double v);       /* weak f32 scalar */
Value ir_integer(Compile *c, const Cursor *at, int64_t v);     /* weak i64 scalar */
Value ir_cast(Compile *c, const Cursor *at, Value x, DType d); /* x itself if it has type d */
/* Always adds a node: types are not known before pass precision. */
Value ir_cast_asked(Compile *c, const Cursor *at, Value x, DType d);
/* Zeros with the shape of `like`. */
Value ir_zeros(Compile *c, const Cursor *at, Value like, DType d);
Value ir_reshape(Compile *c, const Cursor *at, Value x, const int64_t *dim, uint32_t rank);
Value ir_expand(Compile *c, const Cursor *at, Value x, const int64_t *dim, uint32_t rank);
/* Axis i of the result is axis axes[i] of x. */
Value ir_permute(Compile *c, const Cursor *at, Value x, const uint32_t *axes);
/* sum, mean, amax or amin over a mask of axes: one node for each run of adjacent axes. */
Value ir_reduce(Compile *c, const Cursor *at, OpKind op, Value x, uint64_t axes, bool keepdim);
bool ir_axes_touch(uint64_t axes); /* the mask is one run, so one node is enough */
/* x, summed over the axes along which a tensor with the dims of `like` was broadcast to x. */
Value ir_sum_to(Compile *c, const Cursor *at, Value x, const Node *like);

/* ---- what they are ---- */

Parameter *ir_parameter(const Graph *g, const Node *n); /* NULL: n is not a parameter */
int64_t ir_adds_to(const Node *n); /* the parameter to whose gradient n adds; -1: none */

/* ---- loops: Note [loops] in node.h ---- */

Value ir_next(Compile *c, const Cursor *at, Value carry, Value x);
Value ir_turn(Compile *c, const Cursor *at, Value sequence, uint16_t loop);
Value ir_stack(Compile *c, const Cursor *at, Value x, uint16_t loop);
/* The loop that carries n, or that n begins or ends; 0: none. */
uint16_t ir_carries(const Node *n);
uint16_t ir_begins_loop(const Node *n);
uint16_t ir_ends_loop(const Node *n);
/* Indexed by the id of a `carry`: its `next`. */
const Value *ir_nexts(const Compile *c);
/* The innermost loop whose iterations give v different values, as its readers see it. */
uint16_t ir_loop_of(const Graph *g, Value v);
uint16_t ir_loop_of_node(const Graph *g, const Node *n);
/* The loop for a new node with loop n->loop: as far outside as its inputs allow. */
uint16_t ir_loop_for(const Graph *g, const Node *n);
