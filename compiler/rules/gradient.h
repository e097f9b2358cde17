/* The helpers that gradient rules use.
 *
 * A rule receives dy in the shape and type of y. It may return a gradient in a broadcast shape or
 * in another float type than the input: its caller, passes/backward.c, sums and casts it. Types are
 * final here. Backward runs in the types of forward, so nothing is cast by category. */
#pragma once
#include "rules.h"

/* One forward node, and what its gradient rule needs to build backward nodes. */
typedef struct Back {
  Compile *c;
  Cursor at;
  Value y, dy;
  Node n; /* a copy of y's node, because an append may move the nodes */
} Back;

Back back_begin(Compile *c, Value y, Value dy);
const Node *back_in(const Back *b, uint32_t i); /* valid until the next append */
Value back_unary(Back *b, OpKind op, Value x);
Value back_binary(Back *b, OpKind op, Value x, Value y);
Value back_scale(Back *b, Value x, double factor); /* x times a number */
Value back_mul(Back *b, Value x, Value y);
/* Casts x to f32. Before pass precision it always appends the cast: x has no final type yet. */
Value back_wide(Back *b, Value x);
Value back_where(Back *b, Value condition, Value x, Value y);
/* Lets v, a random op, draw the numbers that y has drawn. */
void back_draws(Back *b, Value v);
Value back_number(Back *b, double v);
/* back_flip: x with axis `dim` reversed. back_moved: x shifted along `dim`: element c is x[c - by],
 * or 0 outside of x; `by` is 1 or -1. */
Value back_flip(Back *b, Value x, int64_t dim);
Value back_moved(Back *b, Value x, int64_t dim, int64_t by);
/* Reshapes v [c] to [1, c, 1, ..], which broadcasts to images: c is at the node's channel axis. */
Value back_channels(Back *b, Value v);
/* Adds the index of the largest element in each window of a max_pool2d. */
Value back_greatest(Back *b);
/* Appends an op with inputs in[0, n) and the attributes of the forward node. */
Value back_like(Back *b, OpKind op, const Value *in, uint32_t n);

/* The head of a rule: `b` for building, `x` the inputs of the forward node. */
#define BEGIN                                                                                      \
  Back back = back_begin(c, n, dy), *b = &back;                                                    \
  const Value *x = b->n.in;                                                                        \
  (void)x

/* Defines a gradient rule by one expression: the gradient of input 0. */
#define RULE(name, dx)                                                                             \
  void name(Compile *c, Value n, Value dy, Value *out_dx)                                          \
  {                                                                                                \
    BEGIN;                                                                                         \
    out_dx[0] = (dx);                                                                              \
  }
