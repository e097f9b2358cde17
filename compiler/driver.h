/* One compile from options to plan. main.c and the runner both go through here. */
#pragma once
#include "compile.h"

Compile *compile_create(const Options *options); /* copies the struct; strings must outlive it */
void compile_destroy(Compile *c);
/* Reads and parses options.input with its imports and runs all passes. False after messages. */
bool compile_job(Compile *c);
/* The same for a text in memory under a name, for tests and the REPL. */
bool compile_text(Compile *c, const char *name, const char *text, size_t size);
/* For graphs built by hand (tests): the passes after lower. */
bool compile_graph(Compile *c);
void list_passes(Text *out);
void list_ops(Text *out); /* from the op table: name, signature, precision, doc */
