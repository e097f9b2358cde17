/* Writes NPY headers: magic, version 1.0, a Python dictionary padded with blanks. */
#include <string.h>
#include "infer.h"
#include "runtime/plan/types.h"

static const char *descr_of(ampc_dtype dtype, bool real64)
{
  const char *own = ampc_type_of(dtype)->npy;
  return dtype == AMPC_F32 && real64 ? "<f8" : *own ? own : ampc_type_of(AMPC_F32)->npy;
}

void npy_header(ampc_dtype dtype, bool real64, int64_t rows, bool has_rows, uint32_t rank,
                const int64_t *dim, char out[NPY_HEADER])
{
  enum { BEGIN = 10, TEXT = NPY_HEADER - BEGIN };
  char text[TEXT + 1];
  int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                   descr_of(dtype, real64));
  if (has_rows) n += snprintf(text + n, sizeof text - (size_t)n, "%lld, ", (long long)rows);
  for (uint32_t i = has_rows ? 1 : 0; i < rank; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%lld, ", (long long)dim[i]);
  n += snprintf(text + n, sizeof text - (size_t)n, "), }");
  memset(out, ' ', NPY_HEADER);
  memcpy(out, "\x93NUMPY\x01\x00", 8);
  out[8] = (char)(TEXT & 255);
  out[9] = TEXT >> 8;
  memcpy(out + BEGIN, text, (size_t)n);
  out[NPY_HEADER - 1] = '\n';
}
