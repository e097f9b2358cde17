/* From files to trees: reads a job, what it imports and the texts of its own ops. */
#pragma once
#include "ast.h"
#include "compiler/base/compile.h"
#include "runtime/plan/file.h"

Compile *compile_create(const Options *options); /* copies the struct; strings must outlive it */
void compile_destroy(Compile *c);

/* The text of a file, *size bytes and a zero, in the arena. NULL with *why: it cannot be read, or
 * it is larger than MAX_SOURCE. */
const char *source_read(Arena *arena, FileRole role, const char *path, uint32_t *size,
                        const char **why);
/* Parses a text under a name, or that of a file. False also where an earlier text had mistakes: the
 * passes then only look for more. */
bool source_parse(Compile *c, const char *name, const char *text, uint32_t size, Ast *out);
bool source_parse_file(Compile *c, const char *path, const char *text, uint32_t size, Ast *out);
/* The tree of an imported file, for pass lower. `path` is looked for in the folder of the file that
 * holds `at`, then in options.include_dirs; each file is parsed once. NULL after messages. */
const Ast *source_import(Compile *c, const char *path, Span at);
/* A file beside the one that holds `at`, as a source of its own: *size bytes, at *base. NULL after
 * a message. */
const char *source_open_text(Compile *c, const char *path, Span at, uint32_t *base, uint32_t *size);
