/* The reference of the language: an entry for each name of it. Text and examples stand in the
 * chapters beside this file, signatures come from the tables. `ampc --help-on`, `:help` and
 * docs/language.md print the same entries. */
#pragma once
#include "compiler/base/names.h"

/* Everything that is known under a name: "Conv2d", "minimize". A name may have several entries,
 * such as that of a function and that of a clause. False: there is none. */
bool help_on(const char *name, Text *out);
/* All entries, by chapter. */
void help_all(Text *out);
/* The name spelt most like `name`; NULL if none comes close. */
const char *help_nearest(Arena *arena, const char *name);
/* Names with an entry, each once. */
void help_names(Arena *arena, NameVec *out);
/* What is wrong with the chapters, a line each; nothing if each built-in has an entry, and each
 * whose signature no table knows has it in its heading. For tests. */
void help_check(Text *out);
