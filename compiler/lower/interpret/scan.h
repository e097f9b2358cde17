/* The `scan` statement: scan.c. */
#pragma once
#include "compiler/lower/lower.h"

void exec_scan(Lower *l, Frame *f, const Stmt *st);
void exec_emit(Lower *l, Frame *f, const Stmt *st);
/* True if x[d] is the slice of an iteration: d is the t of an enclosing `scan`, and x is made
 * before that loop. */
bool is_scan_slice(const Lower *l, Datum d, Value x);
/* Returns the slice of x at index t along `axis`; value 0 after a message. */
Value index_by_scan(Lower *l, Value x, uint32_t axis, Datum t, Span span);
