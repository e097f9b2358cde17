/* Adds n pieces of f32 or bf16 numbers, in the order of DeviceOps.add: pieces 0 and 1, 2 and 3, .., then
 * these sums, and so on. runtime/cpu/exchange.c adds in the same order, so both give the same bits.
 * The runtime has no CUDA compiler, so the driver gets add.ptx, which `product_check --rewrite`
 * (tests/nvrtc) makes from this file.
 *
 * A thread adds two neighbours (ampc_add_pairs, all addresses are multiples of 8) or one number. It
 * loads EACH pieces at once and adds them. The sums of such parts wait, each on its level of the
 * tree, until their neighbours are done: part i completes as many levels as i has ones at its end.
 * `to` may be one of the pieces. All arguments have 64 bits. */
#define EACH   4
#define LEVELS 10 /* 2^LEVELS parts: 4096 pieces */

typedef long long Wide;
typedef struct Bf16 {
  unsigned short bits;
} Bf16;

static __device__ float2 plus(float2 a, float2 b)
{
  return make_float2(a.x + b.x, a.y + b.y);
}
static __device__ float plus(float a, float b)
{
  return a + b;
}

static __device__ float value(float x)
{
  return x;
}
static __device__ float2 value(float2 x)
{
  return x;
}
static __device__ float value(Bf16 x)
{
  return __uint_as_float((unsigned)x.bits << 16);
}

/* Adds up to EACH pieces from `from` on; `n`: pieces that are left. */
template <typename Number, typename Stored>
static __device__ Number part(const char *from, Wide apart, Wide n)
{
  Number x[EACH];
#pragma unroll
  for (int i = 0; i < EACH; i++)
    if (i < n) x[i] = value(*(const Stored *)(from + i * apart));
#pragma unroll
  for (int step = 1; step < EACH; step *= 2)
#pragma unroll
    for (int i = 0; i + step < EACH; i += 2 * step)
      if (i + step < n) x[i] = plus(x[i], x[i + step]);
  return x[0];
}

template <typename Number, typename Stored>
static __device__ Number tree(const char *from, Wide apart, Wide n)
{
  Number waiting[LEVELS], sum;
  const unsigned parts = (unsigned)((n + EACH - 1) / EACH);
  for (unsigned i = 0; i < parts; i++) {
    const bool last = i + 1 == parts;
    bool waits = false; /* instead of a `break`, so that `waiting` lies in registers */
    sum = part<Number, Stored>(from + i * EACH * apart, apart, n - i * EACH);
#pragma unroll
    for (int level = 0; level < LEVELS; level++) {
      if (!waits && (i >> level & 1)) sum = plus(waiting[level], sum);
      else if (!waits && !last) waiting[level] = sum, waits = true;
    }
  }
  return sum;
}

extern "C" __global__ void ampc_add(float *to, const char *from, Wide apart, Wide n, Wide count)
{
  const Wide i = (Wide)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = tree<float, float>(from + i * 4, apart, n);
}

extern "C" __global__ void ampc_add_pairs(float *to, const char *from, Wide apart, Wide n,
                                          Wide count)
{
  const Wide i = 2 * ((Wide)blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 1 < count)
    *(float2 *)(to + i) = tree<float2, float2>(from + i * 4, apart, n);
  else if (i < count)
    to[i] = tree<float, float>(from + i * 4, apart, n);
}

extern "C" __global__ void ampc_add_bf16(float *to, const char *from, Wide apart, Wide n,
                                         Wide count)
{
  const Wide i = (Wide)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = tree<float, Bf16>(from + i * 2, apart, n);
}

/* Rounds to nearest even. A NaN becomes quiet and must not round up to infinity. */
extern "C" __global__ void ampc_round_bf16(unsigned short *to, const unsigned *from, Wide count)
{
  const Wide i = (Wide)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned x = from[i], rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
  to[i] = (unsigned short)((x & 0x7fffffff) > 0x7f800000 ? x >> 16 | 0x40 : rounded);
}
