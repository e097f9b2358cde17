/* Which weights of attention dropout keeps, as numbers for cuDNN: element i of [0, n) becomes `one`, or
 * 0 where the number first + i that templates/attention.cu draws for it is below least / 2^24. The
 * runtime has no compiler for CUDA, so the driver gets kept.ptx, which `product_check --rewrite`
 * (tests/nvrtc) makes of this text. `state` is that of ampc_state.h: its seed and body come first.
 * Causal attention has rows of `keys` elements, `queries` of them a head, and asks for nothing behind
 * the query: that is 0 and costs no draw. Else `keys` is 0. A thread takes EACH elements, side by
 * side; all arguments are of 64 bits. */
#define EACH 8

typedef unsigned long long Wide;

/* The 24 bits of ampc_uniform: it and ampc_philox stand in templates/device.cuh. */
static __device__ unsigned drawn(Wide seed, Wide body, unsigned stream, Wide element)
{
  unsigned c0 = (unsigned)element, c1 = (unsigned)(element >> 32), c2 = (unsigned)body, c3 = stream;
  unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32) ^ (unsigned)(body >> 32);
  for (int round = 0; round < 10; round++) {
    const Wide p0 = 0xd2511f53ull * c0, p1 = 0xcd9e8d57ull * c2;
    c0 = (unsigned)(p1 >> 32) ^ c1 ^ k0;
    c2 = (unsigned)(p0 >> 32) ^ c3 ^ k1;
    c1 = (unsigned)p1;
    c3 = (unsigned)p0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return c0 >> 8;
}

#ifdef __cplusplus
extern "C"
#endif
__global__ void ampc_kept(unsigned short *out, const Wide *state, Wide stream, Wide one, Wide least,
                          Wide first, Wide n, Wide queries, Wide keys)
{
  const Wide from = ((Wide)blockIdx.x * blockDim.x + threadIdx.x) * EACH;
  const Wide end = from + EACH < n ? from + EACH : n;
  Wide query = keys && from < n ? from / keys % queries : 0, key = keys && from < n ? from % keys : 0;
  for (Wide i = from; i < end; i++) {
    int seen = key <= query;
    seen = seen && drawn(state[0], state[1], (unsigned)stream, first + i) >= least;
    out[i] = seen ? (unsigned short)one : 0;
    if (keys && ++key == keys) key = 0, query = query + 1 == queries ? 0 : query + 1;
  }
}
