/* The passes, in the order of driver.c. Each is false after it has reported a user's mistake. */
#pragma once
#include "compiler/graph/ir.h"

bool pass_lower(Compile *c);     /* c->ast -> c->graph: elaborates; IR_SHAPED */
bool pass_precision(Compile *c); /* decides types, inserts casts; IR_TYPED */
bool pass_gradient(Compile *c);  /* expands `minimize`: backward, update; IR_DIFFED */
bool pass_simplify(Compile *c);  /* equal nodes shared, dead ones dropped, casts folded */
bool pass_layout(Compile *c);    /* NCHW or NHWC, explicit relayouts; IR_LAID */
bool pass_recompute(Compile *c); /* checkpoint(): clones typed nodes */
bool pass_probe(Compile *c);     /* options.probe_every: looks at how large values are */
bool pass_split(Compile *c);     /* long sums and rows, cut into parts */
bool pass_fuse(Compile *c);      /* groups of nodes, one command each; IR_FUSED */
bool pass_memory(Compile *c);    /* places every value by lifetime; IR_PLACED */
bool pass_plan(Compile *c);      /* c->program: commands, tables; IR_PLANNED */

/* Gradient of y with respect to each of xs, given dy (shape and type of y): appended at `at`. A
 * value that y does not depend on gets 0. For tests. */
const Value *gradient_of(Compile *c, const Cursor *at, Value y, Value dy, const Value *xs,
                         uint32_t n);
