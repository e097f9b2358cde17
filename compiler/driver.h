/* One compile from options to plan. main.c and the runner both go through here. */
#pragma once
#include "compile.h"
#include "runtime/plan/file.h"

Compile *compile_create(const Options *options); /* copies the struct; strings must outlive it */
void compile_destroy(Compile *c);
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
/* A file as compile_job reads it: *size bytes and a zero. NULL with *why. */
const char *compile_read_file(Arena *arena, FileRole role, const char *path, uint32_t *size,
                              const char **why);
/* Reading and parsing alone, for --emit=ast: c->ast. */
bool compile_parse_job(Compile *c);
/* The tree of an imported file, for pass lower. `path` is looked for in the folder of the file that
 * holds `at`, then in options.include_dirs; each file is parsed once. NULL after messages. */
const Ast *compile_import(Compile *c, const char *path, Span at);
/* A file beside the one that holds `at`, as a source of its own: *size bytes, at *base. NULL after
 * a message. */
const char *compile_text_file(Compile *c, const char *path, Span at, uint32_t *base,
                              uint32_t *size);
/* For graphs built by hand (tests): the passes after lower. */
bool compile_graph(Compile *c);
bool pass_exists(const char *name);
const char *pass_name(uint32_t i); /* in order; NULL after the last */
void list_passes(Text *out);
typedef VEC(const char *) Words;
/* Layers, functions and operations that every program can name; copied to the arena. */
typedef struct Builtin {
  const char *name;
  const char *signature; /* "gelu(x, approximate: str = "none")"; NULL: no table knows it */
  const char *facts;     /* of an op: what autocast does with it, whether it has a gradient */
} Builtin;
typedef VEC(Builtin) Builtins;
void list_builtins(Arena *arena, Builtins *out);
void list_ops(Text *out); /* from the op table: name, signature, precision, doc */
