/* The system's C compiler: finding, naming and running it. */
#pragma once
#include "ampc_rt.h"

typedef struct Toolchain {
  const char *compiler; /* path */
  const char
      *identity;     /* version, flags, this CPU. It, `march` and the text determine the output */
  const char *march; /* "native"; a caller may change it in a copy */
} Toolchain;

/* Finds the compiler, once per process. AMPC_NO_COMPILER: PATH has none of cc, gcc, clang. */
ampc_status toolchain_find(const Toolchain **out);

/* Compiles C text to a shared library at `path`. `scratch` is the folder for the compiler's
 * temporary files (NULL: the compiler's default). AMPC_BAD_FILE: the disk is full.
 * AMPC_NO_COMPILER: the compiler rejects the text, and ampc_last_error has its messages. */
ampc_status toolchain_build(const Toolchain *t, const char *text, size_t size, const char *path,
                            const char *scratch);
