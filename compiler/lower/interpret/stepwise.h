/* Elaborates a program line by line, for a caller that writes it and needs the shapes meanwhile. */
#pragma once
#include "compiler/base/compile.h"
#include "compiler/syntax/ast_expr.h"
#include "runtime/plan/ampc_plan.h"

typedef struct Stepwise Stepwise;

/* What a name holds. */
typedef struct Known {
  bool tensor; /* false: another value, or none after a mistake */
  ampc_dtype dtype;
  uint32_t rank;
  int64_t dim[AMPC_MAX_RANK];
} Known;

/* Begins an infer block; `defs` are declarations that the lines may use. The memory is that of the
 * compile. NULL: the defs have mistakes. */
Stepwise *stepwise_begin(Compile *c, const char *defs);
/* Binds a name to a tensor whose numbers are unknown. */
void stepwise_tensor(Stepwise *s, const char *name, ampc_dtype dtype, const int64_t *dim,
                     uint32_t rank);
/* Elaborates "y = relu(x)" or "model m = Linear(3, 4)", after which m is a name like y. Returns
 * false after messages. */
bool stepwise_line(Stepwise *s, const char *line);
Known stepwise_known(Stepwise *s, const char *name);

/* ---- expressions of the defs ---- */
void stepwise_enter(Stepwise *s); /* begins the variables of a def anew */
/* Sets a variable of the def to the value of an expression of the lines. Returns false after
 * messages. */
bool stepwise_bind(Stepwise *s, const char *name, const char *value);
/* The same for an expression of the def. */
bool stepwise_bind_known(Stepwise *s, const char *name, const Expr *value);
/* Returns the text of an expression's value if a job knows it when it compiles: "3", "[1, 2]". "":
 * it is a tensor or the like. NULL after a message. */
const char *stepwise_value(Stepwise *s, const Expr *e);
