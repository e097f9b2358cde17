/* Checks of headers, with the messages for them. */
#include "header.h"
#include <stdio.h>
#include <string.h>

/* Multiplies only while the product stays below `most`, so that it cannot overflow. */
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

/* "u8[28, 28]". A rank below AMPC_MAX_RANK fits into 200 bytes. */
static void type_text(char *to, size_t size, ampc_dtype t, const int64_t *dim, uint32_t rank)
{
  int used = snprintf(to, size, "%s[", ampc_dtype_name(t));
  for (uint32_t i = 0; i < rank; i++)
    used += snprintf(to + used, size - (size_t)used, "%s%lld", i ? ", " : "", (long long)dim[i]);
  snprintf(to + used, size - (size_t)used, "]");
}

/* Sizes that the program has as literals must be the file's. `samples` 0: not known when it was
 * compiled, any number will do. */
ampc_status header_check(const ampc_header *h, const char *path, const ampc_source *desc)
{
  bool same = h->dtype == desc->dtype && h->rank == desc->rank;
  for (uint32_t i = 0; same && i < desc->rank; i++) same = h->dim[i] == desc->dim[i];
  char has[200], wants[200];
  type_text(has, sizeof has, h->dtype, h->dim, h->rank);
  type_text(wants, sizeof wants, desc->dtype, desc->dim, desc->rank);
  if (!same)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has samples of type %s, the program was compiled for %s: its source wants "
                     "shape=%s, dtype=%s",
                     path, has, wants, strchr(has, '['), ampc_dtype_name(h->dtype));
  if (desc->samples && desc->samples != h->samples)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has %lld samples, the program was compiled for %lld: compile it again",
                     path, (long long)h->samples, (long long)desc->samples);
  return AMPC_OK;
}
