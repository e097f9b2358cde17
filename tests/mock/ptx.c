/* C twins of the kernels that the runtime brings as PTX (runtime/cuda/relu.c). The text itself is
 * not read beyond their names; ptxas reads it in test_mock_device.c. */
#include "image.h"
#include "mock.h"
#include <stdio.h>
#include <string.h>

enum { BLOCK = 256 };

/* Bits that lie from `first` on, `count` of them, become 0: the arguments are x, n, first, count.
 */
#define TWIN(NAME, TYPE)                                                                           \
  static void NAME(void *const *arguments, unsigned block, unsigned n_blocks)                      \
  {                                                                                                \
    (void)n_blocks;                                                                                \
    TYPE *x = arguments[0];                                                                        \
    uint64_t n = (uint64_t)arguments[1], end = (block + (uint64_t)1) * BLOCK;                      \
    TYPE first = (TYPE)(uint64_t)arguments[2], count = (TYPE)(uint64_t)arguments[3];               \
    for (uint64_t i = block * (uint64_t)BLOCK; i < end && i < n; i++)                              \
      if ((TYPE)(x[i] - first) < count) x[i] = 0;                                                  \
  }
TWIN(relu16, uint16_t)
TWIN(relu32, uint32_t)
TWIN(relu64, uint64_t)

#define KERNEL(TWIN, BYTES)                                                                        \
  {                                                                                                \
    "ampc_" #TWIN, TWIN, 4, (const unsigned char[])                                                \
    {                                                                                              \
      BYTES, A_NUMBER, A_NUMBER, A_NUMBER                                                          \
    }                                                                                              \
  }
static const MockKernel kernels[] = {
    KERNEL(relu16, 2), KERNEL(relu32, 4), KERNEL(relu64, 8), {NULL, NULL, 0, NULL}};

const MockKernel *mock_ptx_kernels(const void *image)
{
  static const char begin[] = ".version ";
  if (strncmp(image, begin, sizeof begin - 1) != 0) return NULL;
  for (const MockKernel *k = kernels; k->name; k++) {
    char entry[64];
    snprintf(entry, sizeof entry, ".visible .entry %s(", k->name);
    if (!strstr(image, entry)) return NULL;
  }
  return kernels;
}
