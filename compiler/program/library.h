/* Shared by the files that print a library: library.c, library_loop.c, library_text.c, fortran.c.
 */
#pragma once
#include "program_parts.h"

const char *library_job(Printer *p);                            /* the prefix of all names */
const char *library_argument(Printer *p, const ampc_source *s); /* "in_image" */

/* Names of an infer block's function, of results and of sizes; "u8[1, 28, 28]". */
const char *library_function(Printer *p, const ampc_block *b);
const char *library_result(Printer *p, const ampc_output_desc *o);
const char *library_size(Printer *p, const ampc_dim_size *s);
const char *library_shape(Printer *p, ampc_dtype dtype, const int64_t *dim, uint32_t rank);
/* True if the block is the first of its function. A block with dims exists once for each choice of
 * dims; all choices share one function. The blocks of a decoder have other functions. */
bool library_is_first(const ampc_program *g, uint32_t block);

/* Blocks of loops: a name's part such as "step" or "eval_2", its metrics' struct, and the function
 * that gets these. */
bool library_has_loop(const ampc_program *g);
bool library_is_loop(const ampc_program *g, uint32_t block);
const char *library_verb(Printer *p, uint32_t block);
const char *library_struct(Printer *p, uint32_t block);
const char *library_get(Printer *p, uint32_t block);

/* Whether the program has functions for loops, and one of them may have this name, without the
 * prefix. */
bool library_reserves(const ampc_program *g, const char *name);
/* Print declarations for the functions that follow, these functions, and their part of the header.
 * Without a block whose samples are given they print nothing. */
void put_loop_declarations(Printer *p);
void put_loop_functions(Printer *p);
void put_loop_header(Printer *p);

/* library_text.c: whether the program is a decoder; the same for its functions. Without a decoder
 * they print nothing. */
bool library_has_text(const ampc_program *g);
void put_text_declarations(Printer *p);
void put_text_functions(Printer *p);
void put_text_header(Printer *p);
