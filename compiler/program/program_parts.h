/* Declarations for the files that print the host half. */
#pragma once
#include "compiler/kernel/printer.h"
#include "compiler/graph/ir.h"

/* ---- values as C: program_text.c ---- */

const char *quoted(Printer *p, const char *s);
const char *comment_of(Printer *p, const char *name);
const char *number(Printer *p, double v);
const char *truth(bool b);
const char *dims(Printer *p, const int64_t *dim, uint32_t rank); /* "{28, 28}" */

/* Add a struct's fields to t as designated initialisers, in the order of their declaration, which
 * C++ requires. Fields that are 0 are left out. Each text after the first begins with ", ". */
void field_text(Text *t, const char *name, const char *value);
void field_integer(Text *t, const char *name, long long v);
void field_number(Printer *p, Text *t, const char *name, double v);
void field_truth(Text *t, const char *name, bool v);

/* ---- places by name: places.c ---- */

typedef struct ParamPlaces ParamPlaces; /* names of parameters and buffers, for all steps */
ParamPlaces *param_places_create(Compile *c);
const char *param_place(const ParamPlaces *x, uint32_t i); /* returns "p_fc1_weight" */
void put_param_places(Printer *p, const ParamPlaces *x, const ampc_program *g);
typedef struct Places Places; /* places in WORK and STATE that one step uses */
Places *places_create(Printer *p, const ParamPlaces *params, const ampc_step *s);
void put_places(Printer *p, const Places *x); /* prints places as constants, with comments */
/* Writes to `out` the values whose bytes are the command's operands, in their order; {0} if an
 * operand is not a value of the graph. */
void operand_values(Compile *c, uint32_t group, const ampc_command *command, Value *out);
/* Returns the name of a place, "at_relu26", for an operand with the bytes of v ({0}: scratch), or
 * NULL. */
const char *place_text(Printer *p, Places *x, ampc_ref at, Value v);

/* ---- library.c ---- */
void put_library(Printer *p); /* prints functions for other programs instead of main() */

/* ---- products.c ---- */

typedef struct Products Products; /* descriptions of products and convolutions, for all steps */
Products *products_create(Compile *c);
/* Prints the descriptions of these commands and of the bodies of loops, unless they are already
 * printed. */
void put_products(Printer *p, Products *x, const ampc_command *commands, uint32_t n);
/* Returns the name of the command's description. */
const char *product_name(Printer *p, Products *x, const ampc_command *command);

/* ---- steps: step.c ---- */

const char *step_name(Printer *p, const ampc_block *b, const ampc_step *s);
/* Returns the number of parts of a step: with members, each ends with exchanges. */
uint32_t step_parts(const ampc_step *s);
/* Prints the step function of a block at one batch size, after the descriptions of its products. */
void put_step(Printer *p, const ParamPlaces *params, Products *products, const ampc_block *b,
              const ampc_step *s);
