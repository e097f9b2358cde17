/* Rows: one run of a block for several texts, each with its own arguments, results and cache. */
#pragma once
#include "runtime/runtime.h"

/* Note [rows]
 * A step of a decoder reads all weights to compute one token. So a run for n texts computes the
 * step of one text for n rows, command by command: a product of one row with weights becomes one of
 * n rows; of every other command each row has its own call.
 *
 * Every row has its own INPUT, WORK and CACHE; all other spaces are shared. The calls of a step
 * name addresses in the spaces of the first row. While rows run, these spaces have stand-in
 * addresses, which no memory has, and the runtime uses a device that moves them to each row before
 * it calls the device below it. So neither the compiler nor a device knows of rows, and rows may
 * come and go between two runs. A CPU shares the launches of all rows out to its threads, unless
 * their kernel gets STATE. A GPU gets the launches of each row one by one: a recorded graph would
 * hold the addresses of other texts. */

/* Makes room for n rows; what rows hold is lost if that is more than before. */
ampc_status rows_reserve(ampc_runtime *rt, uint32_t n);
void rows_free(ampc_runtime *rt);
/* Copies bytes to and from INPUT or WORK of a row. */
ampc_status rows_write(ampc_runtime *rt, uint32_t row, ampc_ref to, const void *from,
                       int64_t bytes);
ampc_status rows_read(ampc_runtime *rt, uint32_t row, ampc_ref from, void *to, int64_t bytes);
/* Runs a block for rows 0 to n - 1. cache: the address of each row's CACHE. */
ampc_status rows_run(ampc_runtime *rt, uint32_t block, uint32_t n, char *const *cache);
