/* Prints programs and plans as text. Equal input gives equal bytes. */
#pragma once
#include "compiler/base/compile.h"

/* Prints the whole trainer as one file: CUDA C for target sm_xx, C for target cpu
 * (c->options.target). It includes only ampc_rt.h. Without `with_main` it has functions for other
 * programs instead of main(); emit_header declares them. */
void emit_program(Compile *c, Text *out, bool with_main);
void emit_header(Compile *c, Text *out);
/* Prints the same declarations as a module of Fortran. Returns false after errors: Fortran does not
 * have all names of C. */
bool emit_fortran(Compile *c, Text *out);

/* Prints name, shape and type of each parameter, a line each; last "total N parameters". */
void emit_params(Compile *c, Text *out);
/* Prints --emit=plan: the commands with places, the spaces, totals. */
void emit_plan(Compile *c, Text *out);
