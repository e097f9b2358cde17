/* Reverse-mode differentiation of a part of the graph, for pass gradient and gradient_of(). */
#pragma once
#include "passes.h"

/* The loop that is being differentiated (loop_gradient.c). Values that the loop only reads get
 * their gradients at its end. */
typedef struct LoopBack LoopBack;

typedef struct Backward {
  Compile *c;
  uint32_t n;        /* forward nodes have ids below n */
  bool *wanted;      /* by id: the caller wants the gradient with respect to it */
  bool *active;      /* by id: it is on a differentiable path from a wanted node to y */
  Value *dx;         /* by id: the gradient so far */
  const Value *next; /* by id of a `carry`: its `next` */
  bool *looped;      /* by loop: it has been differentiated */
  LoopBack *loop;
} Backward;

void backward_init(Backward *b, Compile *c, uint32_t n);
/* Finds the active nodes. False: no wanted node is active. */
bool backward_find(Backward *b, Value y);
/* Appends the gradients. Calls done(data, v, gradient) for each wanted node at its end. */
typedef void BackwardDone(void *data, Value v, Value gradient);
void backward_run(Backward *b, Value y, Value dy, BackwardDone *done, void *data);
/* True where no gradient flows from n to its inputs. */
bool backward_stops(const Graph *g, const Node *n);

/* ---- loop_gradient.c ---- */

/* Backward of the outermost loop around node `id`, which is the last node of the loop. */
void backward_loop(Backward *b, uint32_t id);
/* Where the gradient of x is summed: in dx, or in a table of the loop if that only reads x. */
Value *backward_sum(Backward *b, Value x);
/* True: v is a product or convolution in a loop, with weights from outside of it. One product for
 * all iterations computes the gradients of these weights, later. */
bool backward_postpone(Backward *b, Value v, Value dy);
/* After pass gradient: stacks the values of forward's iterations that backward reads. */
void settle_loops(Compile *c);

/* ---- loops.c ---- */

/* Before pass gradient: moves all nodes of a loop before the readers of its results. */
void loops_together(Compile *c);

/* ---- backward.c, for loop_gradient.c ---- */

Cursor backward_cursor(const Graph *g, Value forward);
void backward_add(Backward *b, const Cursor *at, Value x, Value dx);
void backward_step(Backward *b, Value v); /* v's gradient is complete */
