/* Replaces the CUDA compiler. It is put before the text of CUDA kernels, so that the text compiles
 * as C. The program that loads the kernels contains the functions and variables (machine.c). A
 * kernel that uses other parts of CUDA does not build. */
float fmaf(float, float, float);
float sqrtf(float);
float floorf(float);
float ceilf(float);
float rintf(float);
float fabsf(float);
float fmodf(float, float);
double fma(double, double, double);
double floor(double);

typedef struct SimtSize {
  unsigned x, y, z;
} SimtSize;
/* The hooks check that their addresses are multiples of their sizes. */
typedef struct __attribute__((may_alias)) uint2 {
  unsigned x, y;
} uint2;
typedef struct __attribute__((may_alias)) uint4 {
  unsigned x, y, z, w;
} uint4;
typedef struct __attribute__((may_alias)) float2 {
  float x, y;
} float2;
typedef struct __attribute__((may_alias)) float4 {
  float x, y, z, w;
} float4;
/* Constants of a thread. */
extern const SimtSize threadIdx, blockIdx, blockDim, gridDim;

/* All shared memory is in one section, so that it can be filled and watched. */
#define __global__ static
#define __device__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __CUDA_ARCH__ 900
#define __shared__    static __attribute__((section("simt_shared")))

void simt_barrier(unsigned place);
unsigned long long simt_shuffle(unsigned place, unsigned mask, unsigned long long bits,
                                unsigned step);
void simt_fence(void);
unsigned simt_count(unsigned *at, unsigned n);

/* __COUNTER__ distinguishes barriers that a macro puts on one line. */
#define __syncthreads()  simt_barrier(__COUNTER__)
#define __threadfence()  simt_fence()
#define atomicAdd(at, n) simt_count(at, n)
#define __shfl_xor_sync(mask, value, step)                                                         \
  ({                                                                                               \
    union {                                                                                        \
      __typeof__(value) number;                                                                    \
      unsigned long long bits;                                                                     \
    } simt_word = {value};                                                                         \
    simt_word.bits = simt_shuffle(__COUNTER__, mask, simt_word.bits, (unsigned)(step));            \
    simt_word.number;                                                                              \
  })

static inline unsigned __float_as_uint(float x)
{
  union {
    float number;
    unsigned bits;
  } u = {x};
  return u.bits;
}

static inline float __uint_as_float(unsigned bits)
{
  union {
    unsigned bits;
    float number;
  } u = {bits};
  return u.number;
}

/* ---- a function of libdevice ---- */

static inline float __nv_half2float(unsigned short from)
{
  union {
    unsigned short bits;
    _Float16 number;
  } u = {from};
  return (float)u.number;
}

/* ---- instructions: ptx.h ---- */

static inline void simt_cvt_f32_f16(float *to, unsigned short from)
{
  *to = __nv_half2float(from);
}

static inline void simt_cvt_rn_f16_f32(unsigned short *to, float from)
{
  union {
    _Float16 number;
    unsigned short bits;
  } u = {(_Float16)from};
  *to = from != from ? 0x7fff : u.bits;
}

/* Rounds to the nearer bf16, ties to even. After the largest comes infinity, as 2^128. */
static inline void simt_cvt_rn_bf16_f32(unsigned short *to, float from)
{
  unsigned bits = __float_as_uint(from), low = bits >> 16;
  double below = __uint_as_float(low << 16);
  double next =
      (low & 0x7fff) == 0x7f7f ? 0x1p128 : __uint_as_float((low << 16 & 0x7fffffff) + 0x10000);
  double up = next - (below < 0 ? -below : below), off = from - below;
  if (off < 0) off = -off;
  *to = (unsigned short)(low + (off + off > up || (off + off == up && low % 2 == 1)));
  if (below - below != 0) *to = (unsigned short)low;
  if (from != from) *to = 0x7fff;
}

/* rounds two numbers; `above` goes into the upper half */
static inline void simt_cvt_rn_bf16x2_f32(unsigned *to, float above, float below)
{
  unsigned short high, low;
  simt_cvt_rn_bf16_f32(&high, above);
  simt_cvt_rn_bf16_f32(&low, below);
  *to = (unsigned)high << 16 | low;
}

/* computes mov.b32 to, {0, from} */
static inline void simt_mov_b32(float *to, unsigned short from)
{
  *to = __uint_as_float((unsigned)from << 16);
}
