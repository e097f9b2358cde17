/* Numbers of bytes as text, with the same units everywhere: powers of 1000. */
#pragma once
#include <stdint.h>

enum { AMPC_BYTES_ROOM = 24 };
/* Writes three digits and a prefix: "999 B", "3.59 kB", "444 MB". Returns `text`. */
const char *ampc_bytes_text(int64_t bytes, char text[AMPC_BYTES_ROOM]);
/* Writes a number with any unit, or without one: "25.7 M". Returns `text`. */
const char *ampc_scaled_text(int64_t n, const char *unit, char text[AMPC_BYTES_ROOM]);
