/* The seal of an emitted text.
 *
 * Note [the seal] Users may edit emitted files, so ampc must distinguish an edited file from its
 * own text before it overwrites the file. A line of the head has the xxHash (XXH64) of the whole
 * text, computed with zeros in place of the digits of that hash. The same job gives the same text
 * and therefore the same seal. */
#pragma once
#include "compiler/kernel/printer.h"

/* Prints the line of the seal, with zeros. `comment` begins a comment: "//", "!" in Fortran. */
void seal_put(Printer *p, const char *comment);
/* Writes the digits into the line of the text that begins at `from`, which is complete now. */
void seal_close(Text *out, size_t from);

typedef enum Seal { SEAL_none, SEAL_whole, SEAL_broken } Seal;
/* Returns the state of the seal. none: ampc did not write the text, or the line was removed;
 * broken: somebody edited the text. */
Seal seal_of(const char *text, size_t size);
