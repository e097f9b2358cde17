/* The passes, in the order in which driver.c runs them. A pass returns false if it has reported an
 * error of the job. */
#pragma once
#include "compiler/graph/ir.h"

bool pass_lower(Compile *c); /* makes c->graph from c->ast; IR_SHAPED */
bool pass_members(Compile *c);
bool pass_precision(Compile *c); /* decides types, inserts casts; IR_TYPED */
bool pass_gradient(Compile *c);  /* expands `minimize`: backward, update; IR_DIFFED */
bool pass_simplify(Compile *c);  /* merges equal computations, drops dead nodes, folds casts */
bool pass_decode(Compile *c);    /* options.decode: a program that computes a few tokens */
bool pass_layout(Compile *c);    /* NCHW or NHWC, relayouts as nodes; IR_LAID */
bool pass_recompute(Compile *c); /* checkpoint(): clones nodes for backward */
bool pass_probe(Compile *c);     /* options.probe_every: nodes that measure ranges of values */
bool pass_split(Compile *c);     /* cuts long sums and rows into parts */
bool pass_fuse(Compile *c);      /* groups nodes, one command a group; IR_FUSED */
bool pass_memory(Compile *c);    /* gives every value its place, by lifetime; IR_PLACED */
bool pass_commands(Compile *c);  /* decides what each group becomes; IR_COMMANDS */
bool pass_plan(Compile *c);      /* writes c->program: commands, tables; IR_PLANNED */

/* Appends at `at` and returns the gradients of y with respect to each of xs. dy is the gradient of
 * y and has its shape and type. A gradient is {0} if y does not depend on that value. For tests. */
const Value *gradient_of(Compile *c, const Cursor *at, Value y, Value dy, const Value *xs,
                         uint32_t n);
