/* Values in memory, and facts of nodes that decide how kernels read them. Passes fuse to memory ask
 * for them too, so nothing here needs a command. */
#pragma once
#include "compiler/graph/ops.h"

enum { TENSOR_ALIGNMENT = 16 }; /* bytes: rows of tensor cores start at multiples of it */

/* Returns the node that owns the bytes of v. Follows aliases and folded nodes to their input. */
Value value_root(const Graph *g, Value v);
/* Returns the node with the shape of v's bytes: v, or its input if v is folded, like an expand. */
const Node *value_shape(const Graph *g, Value v);
/* Returns the node whose shape the kernel of v walks: v, or the input of an effect or a stack. */
const Node *node_walked(const Graph *g, Value v);
/* True for an elementwise node if each operand has one element or as many as the node walks. Then
 * one index suffices, even if shapes differ. */
bool reads_flat(const Graph *g, Value v);
/* True if v reads input k in order: the thread of element i of v reads only its element i. */
bool reads_in_order(const Graph *g, Value v, uint32_t k);
/* True for a cast of an f32 parameter to 16 bits. No kernel casts it: the optimizer writes the
 * copy. */
bool is_working_copy(const Graph *g, Value v);
/* True for a cast from 16 bits to f32, which changes no value. */
bool is_widening(const Graph *g, const Node *n);

/* True if the vendor library computes the group. */
bool group_by_library(const Graph *g, uint32_t group);
int target_capability(const Compile *c); /* 80 for sm_80 */

/* Returns the number of elements that the kernel of n walks in the range of an optimizer or a group
 * of parameters; -1: it walks no such range. */
int64_t node_range(const Graph *g, const Node *n);
int64_t param_align(const Graph *g); /* elements; of parameters in their spaces, and of slices */
int64_t update_vector(const Graph *g, const Node *n); /* elements of n that a thread has at once */
/* Returns how many random words of 32 bits an update draws for each element: 0 to 2. */
uint32_t update_words(const Graph *g, const Node *n);
/* Elements of a parameter's place in the spaces of parameters: Note [rows behind]. */
int64_t param_room(const Compile *c, const Parameter *p);
int64_t param_bytes(const Compile *c, const Parameter *p); /* of a buffer or a frozen weight */

/* Returns the place of an operand for each iteration of the loop around the command. `v` owns the
 * bytes; `written`: the command writes them. A slice of a sequence moves with the iteration; other
 * operands stay. */
ampc_operand value_operand(Compile *c, Value v, bool written);
