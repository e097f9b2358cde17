/* Reverse-mode differentiation of a range of nodes, for pass gradient and gradient_of(). */
#pragma once
#include "passes.h"

/* The loop that is being differentiated (loop_gradient.c). Values that the loop only reads get
 * their gradients at its end. */
typedef struct LoopBack LoopBack;

typedef struct Backward {
  Compile *c;
  uint32_t n;   /* forward nodes have ids below n */
  bool *wanted; /* indexed by node id: the caller wants this node's gradient */
  bool *active; /* indexed by node id: it is on a differentiable path from a wanted node to y */
  Value *dx;    /* indexed by node id: its gradient so far */
  const Value *next; /* indexed by the node id of a `carry`: the `next` of that carry */
  bool *looped;      /* indexed by loop: the loop has been differentiated */
  LoopBack *loop;
  bool again;      /* the gradients will be differentiated again: again.c */
  bool transposed; /* b differentiates a tangent, in again.c */
  Span span;       /* of the call of grad(), if `again` is set */
} Backward;

void backward_init(Backward *b, Compile *c, uint32_t n);
/* Finds the active nodes. Returns false if no wanted node is active. */
bool backward_find(Backward *b, Value y);
/* Appends the gradients. Calls done(data, v, gradient) when that of wanted node v is complete. */
typedef void BackwardDone(void *data, Value v, Value gradient);
void backward_run(Backward *b, Value y, Value dy, BackwardDone *done, void *data);
/* Notes the first node on the way back from y that stops gradients to a wanted node, such as a
 * detach or an argmax. */
void backward_note_cut(const Backward *b, Value y);

/* ---- loop_gradient.c ---- */

/* Appends the backward of the outermost loop around `id`, which is the loop's last node. */
void backward_loop(Backward *b, uint32_t id);
/* Returns where the gradient of x is summed: dx, or a table of the loop if it only reads x. */
Value *backward_sum(Backward *b, Value x);
/* If v is a product or convolution in a loop, with weights from outside, records v and returns
 * true: later one product for all iterations computes the gradients of these weights. */
bool backward_postpone(Backward *b, Value v, Value dy);
/* Runs after pass gradient. Stacks the values of forward's iterations that backward reads. */
void settle_loops(Compile *c);

/* ---- again.c ---- */

/* The gradient rule of v has appended the nodes from `first` on. If they cannot be differentiated,
 * replaces out_dx by gradients that can. Reports an op without them. */
void backward_again(Backward *b, Value v, Value dy, uint32_t first, Value *out_dx);
/* Appends the gradients of the active nodes from y back, inside of `loop` where they differ between
 * its iterations. No active node crosses the border of a loop. */
void backward_walk(Backward *b, Value y, Value dy, uint16_t loop);

/* ---- loops.c ---- */

/* Runs before pass gradient. Moves all nodes of a loop before the readers of its results. */
void loops_together(Compile *c);

/* ---- backward.c, for loop_gradient.c ---- */

Cursor backward_cursor(const Graph *g, Value forward);
void backward_add(Backward *b, const Cursor *at, Value x, Value dx);
void backward_step(Backward *b, Value v); /* v's gradient is complete */
