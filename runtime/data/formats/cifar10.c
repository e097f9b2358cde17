/* The binary batches of CIFAR-10: records of a label and a picture, 1 + 3 x 32 x 32 bytes, red,
 * green and blue one behind the other. `of` says which of the two is wanted: "image" or "label". A
 * name that ends in .gz is unpacked. */
#include <string.h>
#include "args.h"
#include "bytes.h"
#include "header.h"
#include <stdlib.h>

enum { PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS };

struct ampc_reader {
  Bytes bytes;
  bool labels;
};

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

static ampc_status cifar10_probe(const char *path, const char *args, ampc_header *out)
{
  int64_t size;
  cifar10_known(args, out);
  ampc_status status = bytes_count(path, "a batch of CIFAR-10", BY_NAME, &size);
  if (status) return status;
  out->samples = size / RECORD;
  if (size && size % RECORD == 0) return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_FILE,
      "%s is truncated or no binary batch of CIFAR-10: it has %lld bytes, which are not "
      "whole records of %d",
      path, (long long)size, RECORD);
}

static void cifar10_close(ampc_reader *r)
{
  if (r) bytes_close(&r->bytes);
  free(r);
}

static ampc_status cifar10_open(const ampc_program *p, const ampc_source *desc, const char *path,
                                uint64_t seed, ampc_reader **out, int64_t *out_samples)
{
  (void)p;
  (void)seed;
  ampc_header h;
  *out = NULL;
  ampc_status status = cifar10_probe(path, desc->args, &h);
  if (!status) status = header_check(&h, path, desc);
  if (status) return status;
  ampc_reader *r = calloc(1, sizeof *r);
  if (!r) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  r->labels = wants_labels(desc->args);
  status = bytes_open(path, "a batch of CIFAR-10", BY_NAME, 0, h.samples * RECORD, true, &r->bytes);
  if (status) {
    free(r);
    return status;
  }
  *out_samples = h.samples;
  *out = r;
  return AMPC_OK;
}

static ampc_status cifar10_copy(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch,
                                void *to)
{
  (void)epoch;
  ampc_status status = AMPC_OK;
  for (int64_t i = 0; i < n && !status; i++) {
    int64_t at = (first + i) * RECORD;
    uint8_t label;
    if (!r->labels) {
      status = bytes_read(&r->bytes, at + 1, PIXELS, (uint8_t *)to + i * PIXELS);
    } else {
      status = bytes_read(&r->bytes, at, 1, &label);
      if (!status) ((int64_t *)to)[i] = label;
    }
  }
  return status;
}

const ampc_format ampc_format_cifar10 = {
    .kind = AMPC_SOURCE_CIFAR10,
    .name = "cifar10",
    .types = {AMPC_U8, AMPC_I64},
    .n_types = 2,
    .known = cifar10_known,
    .probe = cifar10_probe,
    .open = cifar10_open,
    .copy = cifar10_copy,
    .close = cifar10_close,
};
