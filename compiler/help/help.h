/* The reference of the language: an entry for each name. Texts and examples are in the chapters in
 * this folder, signatures are in the layer library and the op table. `ampc --help-on`, `:help` and
 * docs/language.md print the same entries. */
#pragma once
#include "compiler/base/names.h"

/* Prints all entries of a name, such as "Conv2d" or "minimize". A name may have several entries:
 * one for a function and one for a clause. Returns false if it has none. */
bool help_on(const char *name, Text *out);
/* Prints all entries, chapter by chapter. */
void help_all(Text *out);
/* Returns the name with the most similar spelling; NULL if none is similar. */
const char *help_nearest(Arena *arena, const char *name);
/* Adds all names that have an entry to `out`, without duplicates. */
void help_names(Arena *arena, NameVec *out);
/* An entry of a chapter. */
typedef struct HelpEntry {
  const char *name, *heading; /* "batch", "batch = N" */
} HelpEntry;
typedef VEC(HelpEntry) HelpEntries;
void help_chapter(Arena *arena, const char *chapter, HelpEntries *out); /* of "settings.md" */
/* For tests: prints a line for each built-in without an entry, and for each built-in whose
 * signature is neither in a table nor in its heading. */
void help_check(Text *out);
