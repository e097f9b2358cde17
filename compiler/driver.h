/* One compile from options to plan. main.c and the runner both go through here. */
#pragma once
#include "compile.h"

Compile *compile_create(const Options *options); /* copies the struct; strings must outlive it */
void compile_destroy(Compile *c);
/* Reads and parses options.input with its imports and runs all passes. False after messages. */
bool compile_job(Compile *c);
/* The same for a text in memory under a name, for tests and the REPL. */
bool compile_text(Compile *c, const char *name, const char *text, size_t size);
/* Reading and parsing alone, for --emit=ast: c->ast. */
bool compile_parse_job(Compile *c);
/* The tree of an imported file, for pass lower. `path` is looked for in the folder of the file that
 * holds `at`, then in options.include_dirs; each file is parsed once. NULL after messages. */
const Ast *compile_import(Compile *c, const char *path, Span at);
/* For graphs built by hand (tests): the passes after lower. */
bool compile_graph(Compile *c);
bool pass_exists(const char *name);
void list_passes(Text *out);
void list_ops(Text *out); /* from the op table: name, signature, precision, doc */
