/* From files to trees: reads a job, its imports and the texts of its own ops. */
#pragma once
#include "ast.h"
#include "compiler/base/compile.h"
#include "common/file.h"

Compile *compile_create(const Options *options); /* copies the struct; strings must outlive it */
void compile_destroy(Compile *c);

/* Returns the text of a file: *size bytes and a NUL, in the arena. Returns NULL and sets *why if
 * the file cannot be read or is larger than MAX_SOURCE. */
const char *source_read(Arena *arena, FileRole role, const char *path, uint32_t *size,
                        const char **why);
/* Returns the entry of options.open for the file at this path; NULL if it is not open. */
const OpenText *source_opened(const Options *options, const char *path);
/* Like source_read(), but the text of an open file replaces that on disk. */
const char *source_text_of(Compile *c, FileRole role, const char *path, uint32_t *size,
                           const char **why);
/* Parse a text under a name, or the text of a file. Return false if this or an earlier text had
 * errors: then the passes only look for more errors. */
bool source_parse(Compile *c, const char *name, const char *text, uint32_t size, Ast *out);
bool source_parse_file(Compile *c, const char *path, const char *text, uint32_t size, Ast *out);
/* Returns the tree of an imported file, for pass lower; NULL after an error. Searches `path` in the
 * folder of the file that contains `at`, then in options.include_dirs. Each file is parsed once. */
const Ast *source_import(Compile *c, const char *path, Span at);
/* Reads a file as a source of its own; its path is relative to the file that contains `at`. Returns
 * its text, *size bytes that start at offset *base; NULL after an error. */
const char *source_open_text(Compile *c, const char *path, Span at, uint32_t *base, uint32_t *size);
