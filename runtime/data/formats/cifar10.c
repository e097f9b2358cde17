/* The binary batches of CIFAR-10: records of a label and a picture, 1 + 3 x 32 x 32 bytes, in
 * planes of red, green and blue. `of` selects "image" or "label". A file named *.gz is unpacked. */
#include <string.h>
#include "args.h"
#include "array.h"

enum { PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS };

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  const DataFile file = {path, "a batch of CIFAR-10", true};
  char of[8] = "";
  int64_t size;
  args_text(args, "of", of, sizeof of);
  bool label = strcmp(of, "label") == 0;
  out->type = (ElementType){ELEMENT_UNSIGNED, 1, false};
  out->is = label ? (ampc_header){.dtype = AMPC_I64}
                  : (ampc_header){.dtype = AMPC_U8, .rank = 3, .dim = {3, 32, 32}};
  out->step = RECORD;
  if (!path) return AMPC_OK;
  ampc_status status = bytes_count(&file, &size);
  if (status) return status;
  if (!size || size % RECORD)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s is truncated or no binary batch of CIFAR-10: it has %lld bytes, which are not "
        "whole records of %d",
        path, (long long)size, RECORD);
  out->is.samples = size / RECORD;
  int64_t first = label ? 0 : 1;
  return contents ? bytes_open(&file, first, size - first, true, &out->bytes) : AMPC_OK;
}

ARRAY_FORMAT(CIFAR10, cifar10, .types = {AMPC_U8, AMPC_I64}, .n_types = 2, .known = true);
