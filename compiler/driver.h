/* One compile, from options to plan. main.c and the runner both call these functions. */
#pragma once
#include "compiler/syntax/source.h"

/* Reads and parses options.input with its imports, runs all passes. Returns false after errors. */
bool compile_job(Compile *c);
/* Parses text in memory, under a name, then runs all passes. Returns false after errors. For tests
 * and `amp repl`. */
bool compile_text(Compile *c, const char *name, const char *text, size_t size);
/* Adds the declarations of a text to a job that grows in `amp repl` (ast_parse_input, ast_merge).
 * If `out` is not NULL, it gets the declarations of this text alone. Returns false after errors. */
bool compile_add_input(Compile *c, const char *name, const char *text, size_t size, Ast *out);
/* Adds the declarations of a whole file, where statements at the top level are errors. Returns
 * false after errors. */
bool compile_add_file(Compile *c, const char *name, const char *text, size_t size);
/* Runs all passes on c->ast. */
bool compile_parsed(Compile *c);
/* Only reads and parses options.input, to c->ast. For --emit=ast. */
bool compile_parse_job(Compile *c);
/* Runs the passes after lower, for graphs that tests build by hand. */
bool compile_graph(Compile *c);
bool pass_exists(const char *name);
const char *pass_name(uint32_t i); /* in the order in which they run; NULL after the last one */
void list_passes(const TableView *view, Text *out);
void list_ops(const TableView *view, Text *out); /* the op table */
