/* Text files that the build embeds in the program: templates, the layer library, ampc_state.h. */
#pragma once
#include <stddef.h>

typedef struct EmbeddedFile {
  const char *name; /* base name, "map.cu"; NULL ends the table */
  const char *text; /* NUL-terminated */
  size_t size;
} EmbeddedFile;

extern const EmbeddedFile embedded_files[];
const EmbeddedFile *embedded_find(const char *name); /* NULL: no such file */
