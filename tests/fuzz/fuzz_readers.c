/* Fuzz target for the readers of files: bytes as an IDX file, plain or gzipped, and as a
 * checkpoint. Whatever they are, the answer is a status. The first byte picks the reader. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "runtime/data/source.h"
#include "runtime/state/safetensors.h"

static const ampc_program program = {.name = "fuzz"};

static void read_idx(const char *path, ampc_dtype t, uint32_t rank)
{
  ampc_source desc = {.path = path,
                      .dtype = t,
                      .rank = rank,
                      .dim = {2, 3},
                      .part_end = 1,
                      .limit = t == AMPC_F32 ? 0 : 10};
  DataSource s;
  if (source_open(&program, &desc, "", 1, &s) == AMPC_OK) {
    char sample[6 * sizeof(float)];
    for (int64_t i = 0; i < s.count; i++) source_copy(&s, i, 1, sample);
  }
  source_close(&s);
}

static void read_tensors(const char *path)
{
  TensorFile f;
  static const int64_t dim[] = {2, 3};
  TensorType t = {AMPC_F32, false, 2, dim};
  if (tensor_file_read(path, &f)) return;
  const char *bytes = tensor_file_find(&f, "a", &t);
  volatile char sum = 0;
  for (size_t i = 0; bytes && i < 6 * sizeof(float); i++) sum = (char)(sum + bytes[i]);
  tensor_file_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
  static int file = -1;
  static char path[64];
  if (file < 0) {
    file = memfd_create("input", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  }
  if (size < 1 || ftruncate(file, 0) || pwrite(file, bytes + 1, size - 1, 0) != (ssize_t)size - 1)
    return 0;
  switch (bytes[0] % 4) {
  case 0:
    read_tensors(path);
    break;
  case 1:
    read_idx(path, AMPC_U8, 2);
    break;
  case 2:
    read_idx(path, AMPC_I32, 0);
    break;
  default:
    read_idx(path, AMPC_F32, 1);
    break;
  }
  return 0;
}
