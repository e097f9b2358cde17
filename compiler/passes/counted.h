/* Means over the elements that count: nodes counted_mean. */
#pragma once
#include "passes.h"

/* Returns an array, indexed by node id: v is computed from this node. */
bool *needed_for(Compile *c, Value v);
/* Appends a bool: true if v is computed from a mean of no elements. {0}: v has no such mean. */
Value counted_empty(Compile *c, const Cursor *at, Value v);
