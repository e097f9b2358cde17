/* Makes tensors of mask and dropout for cuDNN: [.., heads, queries, keys], n elements. ampc_kept
 * writes `one` where a weight is kept, otherwise 0. ampc_bias writes 0 where a query may attend to
 * a key, otherwise a very low score. The runtime has no CUDA compiler, so the driver gets kept.ptx,
 * which `product_check --rewrite` (tests/nvrtc) makes from this file.
 *
 * Dropout keeps element i if its random number is not below least / 2^24. The program's kernel
 * draws the same number, number first + i. least 0: no dropout. `state` is that of ampc_state.h,
 * which begins with seed and body. `causal`: keys after the query are not needed, so they are 0
 * without a draw. `mask` may be null; it has bytes, with strides m0 to m3 along the four axes. A
 * thread computes EACH consecutive elements. All arguments have 64 bits. */
#define EACH   8
#define LOWEST (-1e30f) /* below all scores; finite, so that a masked row gives no NaN */

typedef unsigned long long Wide;

/* Returns the 24 bits of ampc_uniform. ampc_philox is from templates/device.cuh; product_check puts
 * it before this text. */
static __device__ unsigned drawn(Wide seed, Wide body, unsigned stream, Wide element)
{
  return ampc_philox((unsigned)element, (unsigned)(element >> 32), (unsigned)body, stream,
                     (unsigned)seed, (unsigned)(seed >> 32) ^ (unsigned)(body >> 32)) >> 8;
}

typedef struct Place { /* the position of an element, and of its byte in the mask */
  Wide key, query, head, image;
} Place;

/* Returns a thread's first position. Only this divides: go_on finds the next positions. */
static __device__ Place place_of(Wide i, Wide heads, Wide queries, Wide keys)
{
  const Wide row = i / keys, matrix = row / queries;
  const Place p = {i % keys, row % queries, matrix % heads, matrix / heads};
  return p;
}

static __device__ Place go_on(Place p, Wide heads, Wide queries, Wide keys)
{
  if (++p.key == keys) {
    p.key = 0;
    if (++p.query == queries) {
      p.query = 0;
      if (++p.head == heads) {
        p.head = 0;
        p.image++;
      }
    }
  }
  return p;
}

static __device__ int may_see(Place p, const unsigned char *mask, Wide m0, Wide m1, Wide m2,
                              Wide m3)
{
  return !mask || mask[p.image * m0 + p.head * m1 + p.query * m2 + p.key * m3];
}

#define FIRST_OF_THREAD (((Wide)blockIdx.x * blockDim.x + threadIdx.x) * EACH)

#ifdef __cplusplus
extern "C"
#endif
__global__ void ampc_kept(unsigned short *out, Wide n, Wide heads, Wide queries, Wide keys,
                          const unsigned char *mask, Wide m0, Wide m1, Wide m2, Wide m3,
                          Wide one, Wide causal, const Wide *state, Wide stream, Wide least,
                          Wide first)
{
  const Wide from = FIRST_OF_THREAD, end = from + EACH < n ? from + EACH : n;
  Place p = place_of(from, heads, queries, keys);
  for (Wide i = from; i < end; i++, p = go_on(p, heads, queries, keys)) {
    int kept = (!causal || p.key <= p.query) && may_see(p, mask, m0, m1, m2, m3);
    if (kept && least) kept = drawn(state[0], state[1], (unsigned)stream, first + i) >= least;
    out[i] = kept ? (unsigned short)one : 0;
  }
}

#ifdef __cplusplus
extern "C"
#endif
__global__ void ampc_bias(float *out, Wide n, Wide heads, Wide queries, Wide keys,
                          const unsigned char *mask, Wide m0, Wide m1, Wide m2, Wide m3)
{
  const Wide from = FIRST_OF_THREAD, end = from + EACH < n ? from + EACH : n;
  Place p = place_of(from, heads, queries, keys);
  for (Wide i = from; i < end; i++, p = go_on(p, heads, queries, keys))
    out[i] = may_see(p, mask, m0, m1, m2, m3) ? 0 : LOWEST;
}
