/* The seal of an emitted text.
 *
 * Note [the seal] Users may edit emitted files, so ampc must tell an edited file from its own
 * before it overwrites the file. A line of the head has the xxHash (XXH64) of the whole text,
 * computed with zeros in place of its digits. The same job gives the same text and therefore the
 * same seal. */
#pragma once
#include "printer.h"

/* Prints the line, with zeros. */
void seal_put(Printer *p);
/* When the text is complete: writes the digits into the line of the text that begins at `from`. */
void seal_close(Text *out, size_t from);

typedef enum Seal { SEAL_none, SEAL_whole, SEAL_broken } Seal;
/* none: ampc did not write the text, or the line was removed; broken: the text was edited since. */
Seal seal_of(const char *text, size_t size);
