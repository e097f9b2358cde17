/* One compile from options to plan. main.c and the runner both go through here. */
#pragma once
#include "compiler/syntax/source.h"

/* Reads and parses options.input with its imports and runs all passes. False after messages. */
bool compile_job(Compile *c);
/* The same for a text in memory under a name, for tests and the REPL. */
bool compile_text(Compile *c, const char *name, const char *text, size_t size);
/* A job in several texts, as it grows at a prompt: each adds what it declares (ast_parse_input,
 * ast_merge). `out` (may be NULL) is what it alone declares. False after messages. */
bool compile_add_input(Compile *c, const char *name, const char *text, size_t size, Ast *out);
/* The same for a whole file's text, in which statements cannot stand at the top. */
bool compile_add_file(Compile *c, const char *name, const char *text, size_t size);
/* All passes over c->ast. */
bool compile_parsed(Compile *c);
/* Reading and parsing alone, for --emit=ast: c->ast. */
bool compile_parse_job(Compile *c);
/* For graphs built by hand (tests): the passes after lower. */
bool compile_graph(Compile *c);
bool pass_exists(const char *name);
const char *pass_name(uint32_t i); /* in order; NULL after the last */
void list_passes(const TableView *view, Text *out);
void list_ops(const TableView *view, Text *out); /* the op table */
