/* Numbers of bytes as people read them: one unit everywhere, powers of 1000. */
#pragma once
#include <stdint.h>

enum { AMPC_BYTES_ROOM = 24 };
/* Three digits and a prefix: "999 B", "3.59 kB", "444 MB"; gives `text`. */
const char *ampc_bytes_text(int64_t bytes, char text[AMPC_BYTES_ROOM]);
/* The same of any unit, as of operations: "25.7 M". */
const char *ampc_scaled_text(int64_t n, const char *unit, char text[AMPC_BYTES_ROOM]);
