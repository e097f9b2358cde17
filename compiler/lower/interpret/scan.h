/* The `scan` statement: scan.c. */
#pragma once
#include "compiler/lower/lower.h"

void exec_scan(Lower *l, Frame *f, const Stmt *st);
void exec_emit(Lower *l, Frame *f, const Stmt *st);
/* Is x[d] the slice of an iteration? Then d is the t of an enclosing `scan`, and x is made before
 * that loop. */
bool is_scan_slice(const Lower *l, Datum d, Value x);
/* The slice of x at index t along `axis`; value 0 after a message. */
Value index_by_scan(Lower *l, Value x, uint32_t axis, Datum t, Span span);
