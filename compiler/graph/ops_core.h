/* The ops that the graph itself is made of: parameters, numbers, casts, views, loops. These
 * functions make their nodes and answer questions about them, so that few files name the ops. */
#pragma once
#include "ir.h"

/* ---- nodes that are made often ---- */

Value ir_unary(Compile *c, const Cursor *at, OpKind op, Value x);
Value ir_binary(Compile *c, const Cursor *at, OpKind op, Value a, Value b);
Value ir_number(Compile *c, const Cursor *at, double v);       /* weak f32 scalar */
Value ir_integer(Compile *c, const Cursor *at, int64_t v);     /* weak i64 scalar */
Value ir_cast(Compile *c, const Cursor *at, Value x, DType d); /* x itself if it has type d */
/* A node in any case: types that pass precision gives are not known yet. */
Value ir_cast_asked(Compile *c, const Cursor *at, Value x, DType d);
/* Of the shape of `like`. */
Value ir_zeros(Compile *c, const Cursor *at, Value like, DType d);
Value ir_reshape(Compile *c, const Cursor *at, Value x, const int64_t *dim, uint32_t rank);
Value ir_expand(Compile *c, const Cursor *at, Value x, const int64_t *dim, uint32_t rank);
/* Axis i of the result is axis axes[i] of x. */
Value ir_permute(Compile *c, const Cursor *at, Value x, const uint32_t *axes);
/* sum, mean, amax or amin over a mask of axes: one node for each run of neighbouring axes. */
Value ir_reduce(Compile *c, const Cursor *at, OpKind op, Value x, uint64_t axes, bool keepdim);
bool ir_axes_touch(uint64_t axes); /* the mask is one run, so one node does */
/* x, summed over the axes along which a tensor of the dims of `like` was broadcast to it. */
Value ir_sum_to(Compile *c, const Cursor *at, Value x, const Node *like);

/* ---- what they are ---- */

Parameter *ir_parameter(const Graph *g, const Node *n); /* NULL: it is something else */
int64_t ir_adds_to(const Node *n); /* the parameter to whose gradient it adds; -1: to none */

/* ---- loops: Note [loops] in ir.h ---- */

Value ir_next(Compile *c, const Cursor *at, Value carry, Value x);
Value ir_turn(Compile *c, const Cursor *at, Value sequence, uint16_t loop);
Value ir_stack(Compile *c, const Cursor *at, Value x, uint16_t loop);
/* The loop whose iterations find n as it was left, or that n begins or ends; 0: none. */
uint16_t ir_carries(const Node *n);
uint16_t ir_begins_loop(const Node *n);
uint16_t ir_ends_loop(const Node *n);
/* By the id of a `carry`: its `next`. */
const Value *ir_nexts(const Compile *c);
/* The loop in whose iterations v differs, for who reads it. */
uint16_t ir_loop_of(const Graph *g, Value v);
uint16_t ir_loop_of_node(const Graph *g, const Node *n);
/* The loop for a node that is made in loop n->loop: as far outside as its inputs allow. */
uint16_t ir_loop_for(const Graph *g, const Node *n);
