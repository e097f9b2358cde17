/* What stands in for the CUDA compiler: put before the text of CUDA kernels, so that it compiles as
 * C. The functions and variables are in the program that loads the kernels (machine.c). A kernel
 * that uses more of CUDA than this does not build. */
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
/* Constants, as far as a thread can see. */
extern const SimtSize threadIdx, blockIdx, blockDim, gridDim;

/* All shared memory lies in one section: there it can be filled and watched. */
#define __global__ static
#define __device__
#define __forceinline__ inline
#define __shared__      static __attribute__((section("simt_shared")))

void simt_barrier(unsigned place);
unsigned long long simt_shuffle(unsigned place, unsigned mask, unsigned long long bits,
                                unsigned step);

/* __COUNTER__ tells barriers apart that a macro puts on one line. */
#define __syncthreads() simt_barrier(__COUNTER__)
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
