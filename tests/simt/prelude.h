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
double exp2(double);

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
unsigned long long simt_shared_address(const void *at);
typedef void SimtMatrix(unsigned first, unsigned *const *lanes);
void simt_matrix(unsigned place, SimtMatrix *instruction, unsigned *words);
SimtMatrix simt_matrix_rows, simt_matrix_columns, simt_matrix_add_f16, simt_matrix_add_bf16;

/* __COUNTER__ distinguishes barriers that a macro puts on one line. */
#define __syncthreads()              simt_barrier(__COUNTER__)
#define __threadfence()              simt_fence()
#define atomicAdd(at, n)             simt_count(at, n)
#define __cvta_generic_to_shared(at) simt_shared_address(at)
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
#define CVT_PAIR(type)                                                                             \
  static inline void simt_cvt_rn_##type##x2_f32(unsigned *to, float above, float below)            \
  {                                                                                                \
    unsigned short high, low;                                                                      \
    simt_cvt_rn_##type##_f32(&high, above);                                                        \
    simt_cvt_rn_##type##_f32(&low, below);                                                         \
    *to = (unsigned)high << 16 | low;                                                              \
  }
CVT_PAIR(f16)
CVT_PAIR(bf16)

static inline void simt_mov_b32(float *to, unsigned short low, unsigned short high)
{
  *to = __uint_as_float((unsigned)high << 16 | low);
}

static inline float simt_flushed(float x)
{
  return x < 0x1p-126f && x > -0x1p-126f ? 0 * x : x;
}

static inline void simt_ex2_approx_ftz_f32(float *to, float from)
{
  *to = simt_flushed((float)exp2(simt_flushed(from)));
}

#define LDMATRIX(name, instruction)                                                                \
  static inline void simt_ldmatrix_sync_aligned_m8n8_x4_##name(                                    \
      unsigned *to0, unsigned *to1, unsigned *to2, unsigned *to3, unsigned at)                     \
  {                                                                                                \
    unsigned words[4] = {at};                                                                      \
    simt_matrix(__COUNTER__, instruction, words);                                                  \
    *to0 = words[0], *to1 = words[1], *to2 = words[2], *to3 = words[3];                            \
  }
LDMATRIX(shared_b16, simt_matrix_rows)
LDMATRIX(trans_shared_b16, simt_matrix_columns)

#define MMA(type)                                                                                  \
  static inline void simt_mma_sync_aligned_m16n8k16_row_col_f32_##type##_##type##_f32(             \
      float *to0, float *to1, float *to2, float *to3, unsigned a0, unsigned a1, unsigned a2,       \
      unsigned a3, unsigned b0, unsigned b1, float c0, float c1, float c2, float c3)               \
  {                                                                                                \
    float *const to[] = {to0, to1, to2, to3};                                                      \
    const float c[] = {c0, c1, c2, c3};                                                            \
    unsigned words[10] = {a0, a1, a2, a3, b0, b1};                                                 \
    for (int k = 0; k < 4; k++) words[6 + k] = __float_as_uint(c[k]);                              \
    simt_matrix(__COUNTER__, simt_matrix_add_##type, words);                                       \
    for (int k = 0; k < 4; k++) *to[k] = __uint_as_float(words[k]);                                \
  }
MMA(f16)
MMA(bf16)
