/* The seal of an emitted text.
 *
 * Note [the seal]
 * Emitted files are there to be edited, so ampc must know an edited one from its own before it
 * writes over it. A line of the head has the xxHash (XXH64) of the whole text, computed with zeros
 * in place of its digits. The same job gives the same text and so the same seal. */
#pragma once
#include "printer.h"

/* Prints the line, with zeros. */
void seal_put(Printer *p);
/* When the text is complete: the digits, into the line of a text that begins at `from`. */
void seal_close(Text *out, size_t from);

typedef enum Seal { SEAL_none, SEAL_whole, SEAL_broken } Seal;
/* none: ampc did not write it, or the line is gone; broken: it was edited since. */
Seal seal_of(const char *text, size_t size);
