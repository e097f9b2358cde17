/* Reverse differentiation of a part of the graph: used by pass gradient and by gradient_of(). */
#pragma once
#include "passes.h"

typedef struct Backward {
  Compile *c;
  uint32_t n;   /* forward nodes: ids below it */
  bool *wanted; /* by id: a gradient with respect to it is asked for; set by the caller */
  bool *active; /* by id: lies on a differentiable way from a wanted node to y */
  Value *dx;    /* by id: the gradient so far */
} Backward;

void backward_init(Backward *b, Compile *c, uint32_t n);
/* Finds the active nodes; false when none of the wanted ones is. */
bool backward_find(Backward *b, Value y);
/* Appends the gradients; at(data, v) is called for each wanted node when its gradient is final. */
typedef void BackwardDone(void *data, Value v, Value gradient);
void backward_run(Backward *b, Value y, Value dy, BackwardDone *done, void *data);
/* True where no gradient flows from n to its inputs. */
bool backward_stops(const Graph *g, const Node *n);
