/* The `scan` statement: scan.c. */
#pragma once
#include "compiler/lower/lower.h"

void exec_scan(Lower *l, Frame *f, const Stmt *st);
void exec_emit(Lower *l, Frame *f, const Stmt *st);
/* Whether x[d] is the slice of a round: d is the t of a `scan` around, and x is there before it. */
bool is_scan_slice(const Lower *l, Datum d, Value x);
/* The slice of x along `axis` that stands at t; value 0 after a message. */
Value index_by_scan(Lower *l, Value x, uint32_t axis, Datum t, Span span);
