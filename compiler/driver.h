/* One compile, from options to plan. main.c and the runner both call these functions. */
#pragma once
#include "compiler/syntax/source.h"

/* Reads and parses options.input and its imports, then runs all passes. Returns false if it has
 * reported errors. */
bool compile_job(Compile *c);
/* The same for text in memory, under a name. For tests and the REPL. */
bool compile_text(Compile *c, const char *name, const char *text, size_t size);
/* For a job that grows at a prompt, text by text. Each text adds its declarations (ast_parse_input,
 * ast_merge). If `out` is not NULL, it gets the declarations of this text alone. Returns false
 * after errors. */
bool compile_add_input(Compile *c, const char *name, const char *text, size_t size, Ast *out);
/* The same for the text of a whole file, where statements at the top level are errors. */
bool compile_add_file(Compile *c, const char *name, const char *text, size_t size);
/* Runs all passes on c->ast. */
bool compile_parsed(Compile *c);
/* For --emit=ast: only reads and parses. The result is c->ast. */
bool compile_parse_job(Compile *c);
/* For graphs that tests build by hand: runs the passes after lower. */
bool compile_graph(Compile *c);
bool pass_exists(const char *name);
const char *pass_name(uint32_t i); /* in order; NULL after the last one */
void list_passes(const TableView *view, Text *out);
void list_ops(const TableView *view, Text *out); /* the op table */
