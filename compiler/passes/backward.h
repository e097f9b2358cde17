/* Reverse differentiation of a part of the graph: used by pass gradient and by gradient_of(). */
#pragma once
#include "passes.h"

/* The loop that is being differentiated; values that it only reads get their gradients when it is
 * done: loop_gradient.c. */
typedef struct LoopBack LoopBack;

typedef struct Backward {
  Compile *c;
  uint32_t n;        /* forward nodes: ids below it */
  bool *wanted;      /* by id: the caller wants the gradient with respect to it */
  bool *active;      /* by id: it is on a differentiable path from a wanted node to y */
  Value *dx;         /* by id: the gradient so far */
  const Value *next; /* by id of a `carry`: its `next` */
  bool *looped;      /* by loop: it has been differentiated */
  LoopBack *loop;
} Backward;

void backward_init(Backward *b, Compile *c, uint32_t n);
/* Finds the active nodes; false when none of the wanted ones is. */
bool backward_find(Backward *b, Value y);
/* Appends the gradients; at(data, v) is called for each wanted node when its gradient is final. */
typedef void BackwardDone(void *data, Value v, Value gradient);
void backward_run(Backward *b, Value y, Value dy, BackwardDone *done, void *data);
/* True where no gradient flows from n to its inputs. */
bool backward_stops(const Graph *g, const Node *n);

/* ---- loop_gradient.c ---- */

/* Backward of the outermost loop that node `id` stands in, which is the last one of it. */
void backward_loop(Backward *b, uint32_t id);
/* Where the gradient of x is summed up: in dx, or beside it where the loop being differentiated
 * only reads x. */
Value *backward_sum(Backward *b, Value x);
/* A product or convolution in a loop whose weights are not: their gradients are left to one product
 * for all iterations. */
bool backward_postpone(Backward *b, Value v, Value dy);
/* After pass gradient: what backward reads of forward's iterations is stacked. */
void settle_loops(Compile *c);

/* ---- loops.c ---- */

/* Before pass gradient: all of a loop stands before what reads its results. */
void loops_together(Compile *c);

/* ---- backward.c, for it ---- */

Cursor backward_cursor(const Graph *g, Value forward);
void backward_add(Backward *b, const Cursor *at, Value x, Value dx);
void backward_step(Backward *b, Value v); /* v's gradient is complete */
