/* The text of runtime/cuda/kept.cu, thread by thread, against the same draws by the host's Philox:
 * every number of its place, and nothing behind the last one. */
#include "check.h"
#include "runtime/base/philox.h"
#include <stdbool.h>

typedef struct Place {
  unsigned x;
} Place;
static Place blockIdx, threadIdx;
static const Place blockDim = {256};
#define __device__
#define __global__
#include "runtime/cuda/kept.cu"

enum { ROOM = 6000, UNTOUCHED = 0x1234, ONE = 0x3f80 };

static void run(unsigned short *out, const Wide *state, Wide stream, Wide least, Wide first, Wide n,
                Wide queries, Wide keys)
{
  unsigned blocks = (unsigned)((n + EACH * blockDim.x - 1) / (EACH * blockDim.x));
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
      ampc_kept(out, state, stream, ONE, least, first, n, queries, keys);
}

/* Seeds and bodies of more than 32 bits, and draws behind the first 2^32. */
static void check_draws(Wide seed, Wide body, Wide stream, Wide first, Wide n, double p)
{
  unsigned short out[ROOM];
  const Wide state[] = {seed, body}, least = (Wide)(p * 0x1p24);
  Wide kept = 0;
  for (int i = 0; i < ROOM; i++) out[i] = UNTOUCHED;
  run(out, state, stream, least, first, n, 0, 0);
  for (Wide i = 0; i < n; i++) {
    Philox drawn =
        philox(seed ^ (body >> 32 << 32), first + i, (body & 0xffffffffu) | stream << 32);
    unsigned short want = drawn.word[0] * 0x1p-32 >= p ? ONE : 0;
    CHECK_MSG(out[i] == want, "draw %llu is %#x", i, out[i]);
    kept += out[i] != 0;
  }
  CHECK(out[n] == UNTOUCHED);
  CHECK_MSG(n < 1000 || (kept > (0.95 - p) * (double)n && kept < (1.05 - p) * (double)n),
            "%llu of %llu are kept", kept, n);
}

/* Two heads of 33 queries and 29 keys: what lies behind the query is 0, all else as without. */
static void check_causal(void)
{
  enum { QUERIES = 33, KEYS = 29, ALL = 2 * QUERIES * KEYS };
  unsigned short all[ROOM], seen[ROOM];
  const Wide state[] = {3, 4};
  run(all, state, 5, 1 << 22, 0, ALL, 0, 0);
  run(seen, state, 5, 1 << 22, 0, ALL, QUERIES, KEYS);
  for (int i = 0; i < ALL; i++) CHECK(seen[i] == (i % KEYS <= i / KEYS % QUERIES ? all[i] : 0));
}

int main(void)
{
  check_draws(1, 0, 0, 0, 5000, 0.25);
  check_draws(0x123456789abcull, 0x500000003ull, 77, 0xfffffff0ull, 4099, 0.5);
  check_draws(7, 3, 2, 11, 9, 0.125);
  check_draws(7, 3, 2, 11, 2048, 0);
  check_causal();
  return check_done();
}
