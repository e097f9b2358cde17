/* The table of formats, from the rows of AMPC_FORMATS. A row without its file does not link. */
#include "runtime/plan/formats.h"
#include <string.h>

static const ampc_format *const formats[] = {
#define ROW(KIND, name) [AMPC_SOURCE_##KIND] = &ampc_format_##name,
    AMPC_FORMATS(ROW)
#undef ROW
};

const ampc_format *ampc_format_of(ampc_source_kind kind)
{
  return kind < sizeof formats / sizeof *formats ? formats[kind] : NULL;
}

const ampc_format *ampc_format_find(const char *name)
{
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (strcmp(formats[i]->name, name) == 0) return formats[i];
  return NULL;
}
