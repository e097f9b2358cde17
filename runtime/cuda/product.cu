/* C = A B (+ C) (+ bias), relu: an ampc_gemm of any types, strides and alignments, for products
 * that cuBLASLt refuses (gemm.c). The runtime has no CUDA compiler, so the driver gets product.ptx,
 * which `product_check --rewrite` (tests/nvrtc) makes from this file.
 *
 * A block computes a tile of C. For DEPTH steps of the sum at a time, its threads load a strip of A
 * and one of B into shared memory as f32. A thread sums EACH x EACH results, SIDE apart, in the
 * order of k, and rounds each once. */
#define TILE  64
#define DEPTH 16
#define SIDE  16 /* threads along either side of a tile */
#define EACH  (TILE / SIDE)

/* as ampc_dtype */
#define F32  0
#define F16  1
#define BF16 2

static __device__ __noinline__ float number_at(const void *x, int type, long long i)
{
  float wide;
  if (type == F32) return ((const float *)x)[i];
  const unsigned short bits = ((const unsigned short *)x)[i];
  if (type == BF16) return __uint_as_float((unsigned)bits << 16);
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
  return wide;
}

/* Stores a number, rounded to nearest, ties to even; NaN stays NaN. */
static __device__ __noinline__ void put_number(void *x, int type, long long i, float value)
{
  if (type == F32) {
    ((float *)x)[i] = value;
    return;
  }
  unsigned short bits;
  if (type == BF16) {
    const unsigned wide = __float_as_uint(value);
    bits = (unsigned short)(value == value ? (wide + 0x7fffu + (wide >> 16 & 1u)) >> 16 : 0x7fffu);
  } else {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  }
  ((unsigned short *)x)[i] = bits;
}

/* Loads the strip of a tile: strip[l][i] is the element at i * row + l * step, or 0 if i or l is
 * out of range. */
static __device__ __noinline__ void bring(float (*strip)[TILE], const void *x, int type,
                                          long long from, long long row, long long step,
                                          long long rows, long long steps)
{
#pragma unroll 1
  for (int t = threadIdx.x; t < TILE * DEPTH; t += SIDE * SIDE) {
    const int along = step == 1; /* neighbouring threads read neighbouring elements */
    const int i = along ? t / DEPTH : t % TILE, l = along ? t % DEPTH : t / TILE;
    strip[l][i] = i < rows && l < steps ? number_at(x, type, from + i * row + l * step) : 0;
  }
}

/* A is [m, k], with element [i, l] at i * a_row + l * a_step. B is [k, n], with [l, j] at j *
 * b_column + l * b_step. `types`: the types of a, b, c and bias, four bits each. */
#ifdef __cplusplus
extern "C"
#endif
__global__ void __launch_bounds__(SIDE *SIDE)
ampc_product(const void *a, const void *b, const void *bias, void *c, long long m, long long n,
             long long k, long long a_row, long long a_step, long long a_stride, long long b_column,
             long long b_step, long long b_stride, long long c_row, long long c_stride,
             long long types, long long accumulate, long long relu)
{
  __shared__ float tile[TILE][TILE]; /* the strips, DEPTH rows each, and then the results */
  float(*const strip_a)[TILE] = tile, (*const strip_b)[TILE] = tile + DEPTH;
  const int a_type = (int)(types & 15), b_type = (int)(types >> 4 & 15);
  const int c_type = (int)(types >> 8 & 15), bias_type = (int)(types >> 12 & 15);
  const unsigned across = (unsigned)((n + TILE - 1) / TILE);
  const unsigned down = (unsigned)((m + TILE - 1) / TILE);
  const long long j = (long long)(blockIdx.x % across) * TILE;
  const long long i = (long long)(blockIdx.x / across % down) * TILE;
  const long long matrix = blockIdx.x / across / down;
  const long long from_a = matrix * a_stride + i * a_row, from_b = matrix * b_stride + j * b_column;
  const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
  float sum[EACH][EACH];
#pragma unroll
  for (int p = 0; p < EACH * EACH; p++) sum[p / EACH][p % EACH] = 0;
  for (long long l = 0; l < k; l += DEPTH) {
    bring(strip_a, a, a_type, from_a + l * a_step, a_row, a_step, m - i, k - l);
    bring(strip_b, b, b_type, from_b + l * b_step, b_column, b_step, n - j, k - l);
    __syncthreads();
#pragma unroll 1
    for (int s = 0; s < DEPTH; s++) {
#pragma unroll
      for (int p = 0; p < EACH * EACH; p++)
        sum[p / EACH][p % EACH] = fmaf(strip_a[s][y + p / EACH * SIDE],
                                       strip_b[s][x + p % EACH * SIDE], sum[p / EACH][p % EACH]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int p = 0; p < EACH * EACH; p++)
    tile[y + p / EACH * SIDE][x + p % EACH * SIDE] = sum[p / EACH][p % EACH];
  __syncthreads();
#pragma unroll 1
  for (int t = threadIdx.x; t < TILE * TILE; t += SIDE * SIDE) {
    const long long row = i + t / TILE, column = j + t % TILE;
    const long long at = matrix * c_stride + row * c_row + column;
    if (row >= m || column >= n) continue;
    float result = tile[t / TILE][t % TILE];
    if (accumulate) result += number_at(c, c_type, at);
    if (bias) result += number_at(bias, bias_type, column);
    put_number(c, c_type, at, relu && result < 0 ? 0 : result);
  }
}

/* ampc_product for doubles, which only tests use: each thread sums its results of the tile alone.
 * `types` is unused. */
#ifdef __cplusplus
extern "C"
#endif
__global__ void __launch_bounds__(SIDE *SIDE)
ampc_product_f64(const double *a, const double *b, const double *bias, double *c, long long m,
                 long long n, long long k, long long a_row, long long a_step, long long a_stride,
                 long long b_column, long long b_step, long long b_stride, long long c_row,
                 long long c_stride, long long types, long long accumulate, long long relu)
{
  const unsigned across = (unsigned)((n + TILE - 1) / TILE);
  const unsigned down = (unsigned)((m + TILE - 1) / TILE);
  const long long matrix = blockIdx.x / across / down;
  (void)types;
#pragma unroll 1
  for (int t = threadIdx.x; t < TILE * TILE; t += SIDE * SIDE) {
    const long long row = (long long)(blockIdx.x / across % down) * TILE + t / TILE;
    const long long column = (long long)(blockIdx.x % across) * TILE + t % TILE;
    const long long at = matrix * c_stride + row * c_row + column;
    if (row >= m || column >= n) continue;
    double sum = 0;
#pragma unroll 1
    for (long long l = 0; l < k; l++)
      sum = fma(a[matrix * a_stride + row * a_row + l * a_step],
                b[matrix * b_stride + column * b_column + l * b_step], sum);
    if (accumulate) sum += c[at];
    if (bias) sum += bias[column];
    c[at] = relu && sum < 0 ? 0 : sum;
  }
}
