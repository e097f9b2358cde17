/* The system's C compiler: finding, naming and running it. */
#pragma once
#include "ampc_rt.h"

typedef struct Toolchain {
  const char *compiler; /* path */
  const char *identity; /* whatever decides what it makes of a text: version, flags, this CPU */
} Toolchain;

/* Looked for once a process; AMPC_NO_COMPILER when PATH has none of cc, gcc and clang. */
ampc_status toolchain_find(const Toolchain **out);

/* Compiles C text to a shared library. What a refusing compiler says goes to stderr. `scratch` is
 * the folder for the compiler's own files (NULL: where it likes). AMPC_BAD_FILE: there was no room
 * for those or for the library; AMPC_NO_COMPILER: it refuses the text. */
ampc_status toolchain_build(const Toolchain *t, const char *text, size_t size, const char *path,
                            const char *scratch);
