/* Checks of headers, with the messages for them. */
#include "header.h"
#include <string.h>
#include "runtime/plan/types.h"

/* Checks before each multiplication that the product is at most `most`, so it cannot overflow. */
ampc_status header_elements(const ampc_header *h, const char *path, int64_t most, int64_t *out)
{
  int64_t n = 1;
  for (uint32_t i = 0; i <= h->rank; i++) {
    int64_t size = i ? h->dim[i - 1] : h->samples;
    if (size < 1) return ampc_fail(AMPC_BAD_FILE, "%s is empty: axis %u has size 0", path, i);
    if (n > most / size)
      return ampc_fail(AMPC_BAD_FILE,
                       "%s is truncated: its header promises more elements than the %lld that a "
                       "file of this size can hold",
                       path, (long long)most);
    n *= size;
  }
  *out = n;
  return AMPC_OK;
}

/* Checks that the file has the sizes that are literals in the program. `samples` 0: unknown at
 * compile time, so any number is accepted. */
ampc_status header_check(const ampc_header *h, const char *path, const ampc_source *desc)
{
  bool same = h->dtype == desc->dtype && h->rank == desc->rank;
  for (uint32_t i = 0; same && i < desc->rank; i++) same = h->dim[i] == desc->dim[i];
  char has[AMPC_TYPE_ROOM], wants[AMPC_TYPE_ROOM];
  ampc_type_text(has, h->dtype, h->rank, h->dim);
  ampc_type_text(wants, desc->dtype, desc->rank, desc->dim);
  if (!same)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has samples of type %s, the program was compiled for %s: compile it with "
                     "shape=%s, dtype=%s in the source",
                     path, has, wants, strchr(has, '['), ampc_dtype_name(h->dtype));
  if (desc->samples && desc->samples != h->samples)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has %lld samples, the program was compiled for %lld: compile it again",
                     path, (long long)h->samples, (long long)desc->samples);
  return AMPC_OK;
}
