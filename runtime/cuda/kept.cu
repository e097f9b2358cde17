/* What cuDNN is told of the mask and dropout of scores, as tensors [.., heads, queries, keys] of n
 * elements: ampc_kept gives `one` where a weight is kept and 0 elsewhere, ampc_bias 0 where a
 * query may see a key and a very low score elsewhere. The runtime has no compiler for CUDA, so
 * the driver gets kept.ptx, which `product_check --rewrite` (tests/nvrtc) makes of this text.
 *
 * Dropout keeps element i where the number first + i that the program's kernel draws for it is
 * not below least / 2^24; least 0: there is none. `state` is that of ampc_state.h: its seed and
 * body come first. `causal`: nobody asks for what lies behind the query: that is 0 and costs no
 * draw. `mask`, bytes with strides m0 to m3 along the four axes, may be null. A thread takes
 * EACH elements, side by side; all arguments are of 64 bits. */
#define EACH   8
#define LOWEST (-1e30f) /* no score comes near; a row of it is no row of NaN */

typedef unsigned long long Wide;

/* The 24 bits of ampc_uniform. ampc_philox is that of templates/device.cuh: product_check puts it
 * in front of this text. */
static __device__ unsigned drawn(Wide seed, Wide body, unsigned stream, Wide element)
{
  return ampc_philox((unsigned)element, (unsigned)(element >> 32), (unsigned)body, stream,
                     (unsigned)seed, (unsigned)(seed >> 32) ^ (unsigned)(body >> 32)) >> 8;
}

typedef struct Place { /* of an element, and of its byte in the mask */
  Wide key, query, head, image;
} Place;

/* The only divisions of a thread: what follows an element is found by go_on. */
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
