/* Makes tensors of mask and dropout for cuDNN: [.., heads, queries, keys], n elements. ampc_kept
 * writes the bits `one` where a weight is kept, otherwise 0: 32 bits for each element if `wide`, or
 * 16. ampc_bias writes 0 where a query may attend to a key, otherwise a very low score. The runtime
 * has no CUDA compiler, so the driver gets kept.ptx, which `product_check --rewrite` (tests/nvrtc)
 * makes from this file.
 *
 * Dropout keeps element i if its random number is not below least / 2^24. The program's kernel
 * draws the same number, number first + i, after `each` for each sample before the member's first
 * one. least 0: no dropout. `state` is that of ampc_state.h, which begins with seed, body and
 * first_sample. `causal`: elements whose key comes after the query are 0; cuDNN masks these scores
 * itself. `mask` may be null; it has bytes, with strides m0 to m3 along the four axes. A thread
 * computes EACH consecutive elements; `out` is aligned to 16 bytes. All arguments have 64 bits. */
#define EACH   8
#define LOWEST (-1e30f) /* below all scores; finite, so that a masked row gives no NaN */

typedef unsigned long long Wide;

/* Sets w[0] to w[EACH - 1] to the words of ampc_uniform for elements from `element` on. ampc_drawn
 * is from templates/device.cuh; product_check puts it before this text. */
static __device__ void draw(unsigned *w, Wide seed, Wide body, unsigned stream, Wide element)
{
  const unsigned skipped = element % 4;
  for (int k = 0; k < EACH; k += 4) {
    const ampc_words four = ampc_drawn((long long)seed, (long long)body, stream,
                                       (long long)((element + (Wide)k) / 4));
    for (int i = 0; i < 4; i++) w[k + i] = (unsigned)four.at[i];
  }
  if (!skipped) return;
  const ampc_words last = ampc_drawn((long long)seed, (long long)body, stream,
                                     (long long)(element / 4 + EACH / 4));
  for (unsigned n = 0; n < skipped; n++) {
    for (int i = 0; i + 1 < EACH; i++) w[i] = w[i + 1];
    w[EACH - 1] = (unsigned)(n == 0 ? last.at[0] : n == 1 ? last.at[1] : last.at[2]);
  }
}

typedef struct Walk { /* the order of the elements; the mask, which may be null, and its strides */
  Wide heads, queries, keys, causal;
  const unsigned char *mask;
  Wide m0, m1, m2, m3;
} Walk;

/* Returns a bit for each of `count` elements from `from` on: 1 if the query may attend to the key.
 * Each iteration computes the bits of consecutive keys of one query. */
static __device__ unsigned seen(const Walk *w, Wide from, unsigned count)
{
  const unsigned keys = (unsigned)w->keys;
  unsigned bits = 0, run;
  Wide row = from / w->keys;
  for (unsigned k = 0, key = (unsigned)(from - row * w->keys); k < count; k += run, row++, key = 0) {
    const Wide matrix = row / w->queries;
    const unsigned query = (unsigned)(row - matrix * w->queries);
    run = keys - key < count - k ? keys - key : count - k;
    unsigned n = run; /* the keys up to the query's */
    if (w->causal && key + run > query + 1) n = key > query ? 0 : query + 1 - key;
    unsigned own = (1u << n) - 1;
    const unsigned char *byte = w->mask;
    if (byte) byte += matrix / w->heads * w->m0 + matrix % w->heads * w->m1 + query * w->m2;
    for (unsigned i = 0; byte && i < n; i++)
      if (!byte[(key + i) * w->m3]) own &= ~(1u << i);
    bits |= own << k;
  }
  return bits;
}

#define FIRST_OF_THREAD (((Wide)blockIdx.x * blockDim.x + threadIdx.x) * EACH)

/* Stores `one` or 0 for each bit of `kept`, from element `from` on. */
static __device__ void store_wide(unsigned *out, Wide from, unsigned kept, unsigned one,
                                  unsigned count)
{
  unsigned word[EACH];
  for (int k = 0; k < EACH; k++) word[k] = kept >> k & 1 ? one : 0;
  if (count == EACH) {
    const uint4 low = {word[0], word[1], word[2], word[3]};
    const uint4 high = {word[4], word[5], word[6], word[7]};
    ((uint4 *)out)[from / 4] = low;
    ((uint4 *)out)[from / 4 + 1] = high;
  } else {
    for (unsigned k = 0; k < count; k++) out[from + k] = kept >> k & 1 ? one : 0;
  }
}

static __device__ void store_halves(unsigned short *out, Wide from, unsigned kept, unsigned one,
                                    unsigned count)
{
  unsigned pair[EACH / 2];
  for (int k = 0; k < EACH / 2; k++) /* two elements in one 32-bit word */
    pair[k] = ((kept >> 2 * k & 1) | (kept >> (2 * k + 1) & 1) << 16) * one;
  if (count == EACH) {
    const uint4 all = {pair[0], pair[1], pair[2], pair[3]};
    ((uint4 *)out)[from / EACH] = all;
  } else {
    for (unsigned k = 0; k < count; k++) out[from + k] = kept >> k & 1 ? (unsigned short)one : 0;
  }
}

#ifdef __cplusplus
extern "C"
#endif
__global__ void ampc_kept(void *out, Wide n, Wide heads, Wide queries, Wide keys,
                          const unsigned char *mask, Wide m0, Wide m1, Wide m2, Wide m3,
                          Wide one, Wide causal, const Wide *state, Wide stream, Wide least,
                          Wide first, Wide each, Wide wide)
{
  const Walk w = {heads, queries, keys, causal, mask, m0, m1, m2, m3};
  const Wide from = FIRST_OF_THREAD;
  if (from >= n) return;
  const unsigned count = from + EACH < n ? EACH : (unsigned)(n - from);
  unsigned kept = seen(&w, from, count), word[EACH];
  if (kept && least) {
    draw(word, state[0], state[1], (unsigned)stream, first + state[2] * each + from);
    for (int k = 0; k < EACH; k++)
      if (word[k] >> 8 < (unsigned)least) kept &= ~(1u << k);
  }
  if (wide)
    store_wide((unsigned *)out, from, kept, (unsigned)one, count);
  else
    store_halves((unsigned short *)out, from, kept, (unsigned)one, count);
}

#ifdef __cplusplus
extern "C"
#endif
__global__ void ampc_bias(float *out, Wide n, Wide heads, Wide queries, Wide keys,
                          const unsigned char *mask, Wide m0, Wide m1, Wide m2, Wide m3)
{
  const Walk w = {heads, queries, keys, 0, mask, m0, m1, m2, m3};
  const Wide from = FIRST_OF_THREAD;
  if (from >= n) return;
  const unsigned count = from + EACH < n ? EACH : (unsigned)(n - from);
  const unsigned bits = seen(&w, from, count);
  for (unsigned k = 0; k < count; k++) out[from + k] = bits >> k & 1 ? 0 : LOWEST;
}
