/* The ops that the graph itself consists of: parameters, numbers, casts, views, loops. These
 * functions create their nodes and answer questions about them, so that few files name the ops. */
#pragma once
#include "ir.h"

/* ---- nodes that are made often ---- */

Value ir_unary(Compile *c, const Cursor *at, OpKind op, Value x);
Value ir_binary(Compile *c, const Cursor *at, OpKind op, Value a, Value b);
Value ir_number(Compile *c, const Cursor *at, double v);       /* a weak f32 scalar */
Value ir_integer(Compile *c, const Cursor *at, int64_t v);     /* a weak i64 scalar */
Value ir_cast(Compile *c, const Cursor *at, Value x, DType d); /* returns x if it has type d */
/* Adds a cast that the program asks for, in any case: types are unknown before pass precision. */
Value ir_cast_asked(Compile *c, const Cursor *at, Value x, DType d);
/* Adds zeros of type d with the shape of `like`. */
Value ir_zeros(Compile *c, const Cursor *at, Value like, DType d);
/* Whether a view of x with these dims is x itself. Pass lower keeps such views if pass members will
 * compare its nodes with those for other numbers of samples. */
bool ir_is_itself(Compile *c, Value x, const int64_t *dim, uint32_t rank);
Value ir_reshape(Compile *c, const Cursor *at, Value x, const int64_t *dim, uint32_t rank);
Value ir_expand(Compile *c, const Cursor *at, Value x, const int64_t *dim, uint32_t rank);
/* Permutes axes: axis i of the result is axis axes[i] of x. */
Value ir_permute(Compile *c, const Cursor *at, Value x, const uint32_t *axes);
/* Adds sum, mean, amax or amin over a mask of axes: one node for each run of adjacent axes. */
Value ir_reduce(Compile *c, const Cursor *at, OpKind op, Value x, uint64_t axes, bool keepdim);
bool ir_axes_touch(uint64_t axes); /* true if the mask is one run: one node is enough */
/* Sums x over the axes along which a tensor with the dims of `like` was broadcast to x. */
Value ir_sum_to(Compile *c, const Cursor *at, Value x, const Node *like);

/* ---- facts about them ---- */

Parameter *ir_parameter(const Graph *g, const Node *n); /* NULL if n is no parameter */
/* Returns the index of the parameter to whose gradient n adds; -1 if n adds to no gradient. */
int64_t ir_adds_to(const Node *n);
/* True if no gradient flows from n to its inputs: integers, bools, ops without a rule, no_grad. */
bool ir_stops_gradient(const Graph *g, const Node *n);

/* ---- loops: Note [loops] in node.h ---- */

Value ir_next(Compile *c, const Cursor *at, Value carry, Value x);
Value ir_turn(Compile *c, const Cursor *at, Value sequence, uint16_t loop);
Value ir_stack(Compile *c, const Cursor *at, Value x, uint16_t loop);
/* Each returns a loop: that of the carry n; the one that n begins; the one that n ends. 0: none. */
uint16_t ir_carries(const Node *n);
uint16_t ir_begins_loop(const Node *n);
uint16_t ir_ends_loop(const Node *n);
/* Returns an array that maps the id of a `carry` to its `next`. */
const Value *ir_nexts(const Compile *c);
/* Return the innermost loop in whose iterations v may differ, for the nodes that read v. */
uint16_t ir_loop_of(const Graph *g, Value v);
uint16_t ir_loop_of_node(const Graph *g, const Node *n);
/* Returns the loop for a new node, starting at n->loop: as far outside as the inputs of n allow. */
uint16_t ir_loop_for(const Graph *g, const Node *n);
