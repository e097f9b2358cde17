/* What gradient rules are written with.
 *
 * A rule gets dy in shape and type of y and may return a gradient in a broadcast shape or another
 * float type of the input: whoever calls the rules sums and casts it to fit (passes/backward.c).
 * Types are final here: nothing is cast by category, backward runs in the types of forward. */
#pragma once
#include "rules.h"

typedef struct Back { /* one forward node and what its rule builds on */
  Compile *c;
  Cursor at;
  Value y, dy;
  Node n; /* a copy: appending moves the nodes */
} Back;

Back back_begin(Compile *c, Value y, Value dy);
const Node *back_in(const Back *b, uint32_t i); /* dies with the next append */
Value back_unary(Back *b, OpKind op, Value x);
Value back_binary(Back *b, OpKind op, Value x, Value y);
Value back_scale(Back *b, Value x, double factor); /* x times a number */
Value back_mul(Back *b, Value x, Value y);
Value back_wide(Back *b, Value x); /* in f32 */
Value back_where(Back *b, Value condition, Value x, Value y);
Value back_number(Back *b, double v);
/* x with axis `dim` turned round; x_c-by in the place of x_c, 0 where there is none: by is 1 or -1.
 */
Value back_flip(Back *b, Value x, int64_t dim);
Value back_moved(Back *b, Value x, int64_t dim, int64_t by);
/* Of a node with a channel: v [c] as [1, c, 1, ..], so that it meets images elementwise. */
Value back_channels(Back *b, Value v);
/* Of a max_pool2d: which element of each window is the greatest. */
Value back_greatest(Back *b);
/* An op with inputs in[0, n) and the attributes of the forward node. */
Value back_like(Back *b, OpKind op, const Value *in, uint32_t n);

/* The head of a rule: `b` to build with, `x` the inputs of the forward node, if it needs them. */
#define BEGIN                                                                                      \
  Back back = back_begin(c, n, dy), *b = &back;                                                    \
  const Value *x = b->n.in;                                                                        \
  (void)x

/* Defines a gradient rule by one expression: the gradient of input 0. RULE_2 takes a second one:
 * the gradient of input 1. */
#define RULE(name, dx)                                                                             \
  void name(Compile *c, Value n, Value dy, Value *out_dx)                                          \
  {                                                                                                \
    BEGIN;                                                                                         \
    out_dx[0] = (dx);                                                                              \
  }
#define RULE_2(name, dx, dz)                                                                       \
  void name(Compile *c, Value n, Value dy, Value *out_dx)                                          \
  {                                                                                                \
    BEGIN;                                                                                         \
    out_dx[0] = (dx);                                                                              \
    out_dx[1] = (dz);                                                                              \
  }
