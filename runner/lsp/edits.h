/* Edits of texts: as JSON, and what the compiler says about the texts that they make. */
#pragma once
#include "analysis.h"

typedef struct Edit {
  Span span;        /* among the sources of a compile */
  const char *text; /* that replaces it */
} Edit;
typedef VEC(Edit) Edits; /* in the order of the sources, without overlaps */

/* Returns a WorkspaceEdit. */
json_t *edits_json(const Analysis *a, const Compile *c, const Edits *edits);
/* Compiles the job with the edits, which are of compile `c`, and with these options. */
Compile *edits_compile(const Analysis *a, const Compile *c, const Edits *edits, Options options);
