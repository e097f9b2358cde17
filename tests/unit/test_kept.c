/* Runs runtime/cuda/kept.cu thread by thread and compares with the draws of the host's Philox.
 * Every number must be at its place, and nothing may be written past the last one. */
#include "check.h"
#include "runtime/base/philox.h"
#include <stdbool.h>

typedef struct Size {
  unsigned x;
} Size;
static Size blockIdx, threadIdx;
static const Size blockDim = {256};
#define __device__
#define __global__
/* Computes a word as ampc_philox of templates/device.cuh does, which `selftest` checks. */
static unsigned ampc_philox(unsigned c0, unsigned c1, unsigned c2, unsigned c3, unsigned k0,
                            unsigned k1)
{
  return philox((uint64_t)k1 << 32 | k0, (uint64_t)c1 << 32 | c0, (uint64_t)c3 << 32 | c2).word[0];
}
#include "runtime/cuda/kept.cu"

enum { ROOM = 6000, UNTOUCHED = 0x1234, ONE = 0x3f80 };

typedef struct Walk {
  Wide n, heads, queries, keys, causal;
  const unsigned char *mask;
  Wide stride[4];
} Walk;

static void run(const Walk *w, unsigned short *out, const Wide *state, Wide stream, Wide least,
                Wide first)
{
  unsigned blocks = (unsigned)((w->n + EACH * blockDim.x - 1) / (EACH * blockDim.x));
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
      ampc_kept(out, w->n, w->heads, w->queries, w->keys, w->mask, w->stride[0], w->stride[1],
                w->stride[2], w->stride[3], ONE, w->causal, state, stream, least, first);
}

/* Checks draws: seeds and bodies of more than 32 bits, numbers beyond the first 2^32. */
static void check_draws(Wide seed, Wide body, Wide stream, Wide first, Wide n, double p)
{
  unsigned short out[ROOM];
  const Wide state[] = {seed, body}, least = (Wide)(p * 0x1p24);
  Wide kept = 0;
  for (int i = 0; i < ROOM; i++) out[i] = UNTOUCHED;
  run(&(Walk){n, 1, 1, n, 0, NULL, {0}}, out, state, stream, least, first);
  for (Wide i = 0; i < n; i++) {
    Philox drawn =
        philox(seed ^ (body >> 32 << 32), first + i, (body & 0xffffffffu) | stream << 32);
    unsigned short want = drawn.word[0] * 0x1p-32 >= p ? ONE : 0;
    CHECK_MSG(out[i] == want, "draw %llu is %#x", i, out[i]);
    kept += out[i] != 0;
  }
  CHECK(out[n] == UNTOUCHED);
  CHECK_MSG(n < 1000 ||
                ((double)kept > (0.95 - p) * (double)n && (double)kept < (1.05 - p) * (double)n),
            "%llu of %llu are kept", kept, n);
}

/* Checks two images, three heads, 33 queries, 29 keys. Keys after the query and keys that the mask
 * hides have 0; all others have the numbers without a mask. */
static void check_masks(void)
{
  enum { HEADS = 3, QUERIES = 33, KEYS = 29, ALL = 2 * HEADS * QUERIES * KEYS };
  unsigned short all[ALL], seen[ALL];
  unsigned char mask[2 * KEYS];
  float bias[ALL];
  const Wide state[] = {3, 4};
  for (int i = 0; i < 2 * KEYS; i++) mask[i] = i % 3 != 1;
  Walk w = {ALL, HEADS, QUERIES, KEYS, 0, NULL, {0}};
  run(&w, all, state, 5, 1 << 22, 0);
  w = (Walk){ALL, HEADS, QUERIES, KEYS, 1, mask, {KEYS, 0, 0, 1}};
  run(&w, seen, state, 5, 1 << 22, 0);
  for (blockIdx.x = 0; blockIdx.x <= ALL / (EACH * blockDim.x); blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
      ampc_bias(bias, ALL, HEADS, QUERIES, KEYS, mask, KEYS, 0, 0, 1);
  for (int i = 0; i < ALL; i++) {
    int key = i % KEYS, query = i / KEYS % QUERIES, image = i / KEYS / QUERIES / HEADS;
    int hidden = key > query || !mask[image * KEYS + key];
    CHECK(seen[i] == (hidden ? 0 : all[i]));
    CHECK(bias[i] == (mask[image * KEYS + key] ? 0 : LOWEST));
  }
}

int main(void)
{
  check_draws(1, 0, 0, 0, 5000, 0.25);
  check_draws(0x123456789abcull, 0x500000003ull, 77, 0xfffffff0ull, 4099, 0.5);
  check_draws(7, 3, 2, 11, 9, 0.125);
  check_draws(7, 3, 2, 11, 2048, 0);
  check_masks();
  return check_done();
}
