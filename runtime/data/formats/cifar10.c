/* The binary batches of CIFAR-10: records of a label and a picture, 1 + 3 x 32 x 32 bytes, red,
 * green and blue one behind the other. `of` says which of the two is wanted: "image" or "label". A
 * name that ends in .gz is unpacked. */
#include <string.h>
#include "args.h"
#include "array.h"

enum { PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS };

static bool wants_labels(const char *args)
{
  char of[8] = "";
  args_text(args, "of", of, sizeof of);
  return strcmp(of, "label") == 0;
}

static ampc_status cifar10_known(const char *args, ampc_header *out)
{
  *out = wants_labels(args) ? (ampc_header){.dtype = AMPC_I64}
                            : (ampc_header){.dtype = AMPC_U8, .rank = 3, .dim = {3, 32, 32}};
  return AMPC_OK;
}

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  int64_t size, first = !wants_labels(args); /* of the bytes of a record */
  cifar10_known(args, &out->is);
  ampc_status status = bytes_count(path, "a batch of CIFAR-10", BY_NAME, &size);
  if (status) return status;
  out->type = (ElementType){ELEMENT_UNSIGNED, 1, false};
  out->step = RECORD;
  out->is.samples = size / RECORD;
  if (!size || size % RECORD)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s is truncated or no binary batch of CIFAR-10: it has %lld bytes, which are not "
        "whole records of %d",
        path, (long long)size, RECORD);
  if (!contents) return AMPC_OK;
  return bytes_open(path, "a batch of CIFAR-10", BY_NAME, first, size - first, true, &out->bytes);
}

const ampc_format ampc_format_cifar10 = {
    .kind = AMPC_SOURCE_CIFAR10,
    .name = "cifar10",
    .types = {AMPC_U8, AMPC_I64},
    .n_types = 2,
    .known = cifar10_known,
    .probe = array_probe,
    .locate = locate,
    .open = array_open,
    .copy = array_copy,
    .close = array_close,
};
