/* Shared by the two files that print a library: library.c and library_loop.c. */
#pragma once
#include "program_parts.h"

const char *library_job(Printer *p);                            /* the prefix of all names */
const char *library_argument(Printer *p, const ampc_source *s); /* "in_image" */

/* Whether the program has functions for loops, and one of them may have this name, without the
 * prefix. */
bool library_reserves(const ampc_program *g, const char *name);
/* Print declarations for the functions that follow, these functions, and their part of the header.
 * Without a block whose samples are given they print nothing. */
void put_loop_declarations(Printer *p);
void put_loop_functions(Printer *p);
void put_loop_header(Printer *p);
