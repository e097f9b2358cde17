/* Writes whole files. */
#include "output.h"
#include <stdio.h>
#include <string.h>
#include "common/file.h"

bool output_write(const char *path, const void *data, size_t size)
{
  if (!path || strcmp(path, "-") == 0) {
    fwrite(data, 1, size, stdout); /* main() reports at its end if this failed */
    return true;
  }
  fflush(stdout); /* `path` may be another name of stdout */
  if (file_write(path, NULL, data, (int64_t)size) == AMPC_OK) return true;
  fprintf(stderr, "ampc: error: %s\n", ampc_last_error());
  return false;
}
