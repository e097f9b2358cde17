/* CUDA. This file defines what differs between the CPU and CUDA, under the same names as cpu.h.
 * Launch a kernel with the grid and block that the comment above it states: a thread takes one
 * vector, ON_BLOCK(k) selects block k, __launch_bounds__ gives the largest block. Kernels that use
 * none of the three run with any launch: their loops stride over the whole grid. */
#define DEVICE static __device__ __forceinline__
#define UNUSED __attribute__((unused)) /* for loop variables that a body may ignore */

// --- float_bits
DEVICE unsigned float_bits(float x)
{
  return __float_as_uint(x);
}

// --- bits_float
DEVICE float bits_float(unsigned bits)
{
  return __uint_as_float(bits);
}

// --- f16
/* 16-bit numbers are only stored, as their bits; all arithmetic is done in `real`. */
typedef unsigned short f16;

// --- bf16
typedef unsigned short bf16;

// --- from_f16
/* Converts in one instruction, from the library that every CUDA compiler links. The compiler knows
 * that the result depends only on the operand, so it does not repeat it, as it would with asm. */
#ifdef __cplusplus
extern "C" __device__ float __nv_half2float(unsigned short);
#endif

/* Converts exactly. NaN stays NaN. */
DEVICE real from_f16(f16 h)
{
  return (real)__nv_half2float(h);
}

// --- to_f16
/* Rounds to nearest, ties to even. Values from 65520 on become inf; NaN becomes 0x7fff. */
DEVICE f16 to_f16(real value)
{
  f16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"((float)value));
  return h;
}

// --- from_bf16
DEVICE real from_bf16(bf16 h)
{
  float x; /* bf16 is the upper half of f32 */
  asm("mov.b32 %0, {0, %1};" : "=f"(x) : "h"(h));
  return (real)x;
}

// --- to_bf16
/* Rounds to nearest, ties to even. NaN becomes 0x7fff. */
DEVICE bf16 to_bf16(real value)
{
#if __CUDA_ARCH__ >= 800
  bf16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"((float)value));
  return h;
#else
  unsigned x = __float_as_uint((float)value);
  unsigned h = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
  return (bf16)((x & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : h);
#endif
}

// --- int64_t
/* NVRTC has no headers to include; it has the functions of math.h built in. */
#ifdef __CUDACC_RTC__
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <math.h>
#include <stdint.h>
#endif

// --- op_f16
/* A 16-bit element in the text of an op of the job. It converts implicitly from and to `real`. */
#ifdef __cplusplus
struct op_f16 {
  f16 bits;
  op_f16() = default;
  __device__ __forceinline__ op_f16(real value) : bits(to_f16(value)) {}
  __device__ __forceinline__ operator real() const { return from_f16(bits); }
};
#else
typedef _Float16 op_f16;
#endif

// --- op_bf16
#ifdef __cplusplus
struct op_bf16 {
  bf16 bits;
  op_bf16() = default;
  __device__ __forceinline__ op_bf16(real value) : bits(to_bf16(value)) {}
  __device__ __forceinline__ operator real() const { return from_bf16(bits); }
};
#endif

// --- philox_word
/* A word of 32 bits; products are computed in 64 bits. */
typedef unsigned philox_word;

// --- GRID_LOOP
/* Loops over each i of [0, n). */
#define GRID_LOOP(T, i, n)                                                                         \
  for (T i = (T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x; i < (n);                              \
       i += (T)gridDim.x * (T)blockDim.x)

// --- GRID_ROWS
/* Loops over each r of [0, rows) and c of [0, columns). */
#define GRID_ROWS(T, r, c, rows, columns)                                                          \
  for (T r##_at = (T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x, r = 0, c = 0;                    \
       r##_at < (T)(rows) * (columns) && (r = r##_at / (columns), c = r##_at - r * (columns), 1);  \
       r##_at += (T)gridDim.x * (T)blockDim.x)

// --- vector_copy
/* Copies `bytes` bytes in the fewest accesses. `bytes` is a literal: 1, 2, 4, 8 or a multiple of
 * 16. Both addresses are multiples of `bytes`, or of 16 if it is larger. */
DEVICE void vector_copy(void *to, const void *from, int bytes)
{
  if (bytes == 1)
    *(unsigned char *)to = *(const unsigned char *)from;
  else if (bytes == 2)
    *(unsigned short *)to = *(const unsigned short *)from;
  else if (bytes == 4)
    *(unsigned *)to = *(const unsigned *)from;
  else if (bytes == 8)
    *(uint2 *)to = *(const uint2 *)from;
  else
    for (int i = 0; i < bytes / 16; i++) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
}

// --- vector_copy_words
/* Copies elements of 4 bytes as vector_copy does, but as floats, which moves fewer registers. */
DEVICE void vector_copy_words(void *to, const void *from, int bytes)
{
  if (bytes == 4)
    *(float *)to = *(const float *)from;
  else if (bytes == 8)
    *(float2 *)to = *(const float2 *)from;
  else
    for (int i = 0; i < bytes / 16; i++) ((float4 *)to)[i] = ((const float4 *)from)[i];
}

// --- VECTOR_COPY
#define VECTOR_COPY(to, from, bytes)                                                               \
  (sizeof *(to) == 4 ? vector_copy_words(to, from, bytes) : vector_copy(to, from, bytes))

// --- VECTOR_LOAD
/* A vector is the n neighbouring elements (8, 4, 2 or 1) that a thread processes at once, in
 * registers. name[j], j in [0, n), is element j of the vector at `from`. */
#define VECTOR_LOAD(n, T, name, from)                                                              \
  __align__(16) T name[n];                                                                         \
  VECTOR_COPY(name, from, (int)sizeof name)

// --- VECTOR_ROOM
/* Declares name[j], the elements that VECTOR_STORE will store at `to`. */
#define VECTOR_ROOM(n, T, name, to) __align__(16) T name[n]

// --- VECTOR_STORE
#define VECTOR_STORE(to, name) VECTOR_COPY(to, name, (int)sizeof name)

// --- VECTOR_LOCAL
/* Declares name[j], local to the thread. */
#define VECTOR_LOCAL(n, T, name) T name[n]

// --- VECTOR_WIDTH
#define VECTOR_WIDTH(n) (n)

// --- VECTOR_EACH
/* Loops over each j of the vector. */
#define VECTOR_EACH(n, j) _Pragma("unroll") for (int j = 0; j < (n); j++)

// --- EACH_VECTOR
/* Loops over vectors of elements [i, i + n) in [0, count); n divides count. The launch has a thread
 * for each vector, so a thread runs the body at most once. */
#define EACH_VECTOR(n, T, i, count)                                                                \
  for (T i = ((T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x) * (n); i < (count); i = (count))

// --- EACH_ROW_VECTOR
/* Loops over vectors of columns [c, c + n) in [0, columns), in rows r in [0, rows); n divides
 * columns. The launch has a thread for each vector, so a thread runs the body at most once. */
#define EACH_ROW_VECTOR(n, T, r, c, rows, columns)                                                 \
  for (T r##_at = (T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x, r = r##_at / ((columns) / (n)),  \
         c = (r##_at - r * ((columns) / (n))) * (n);                                               \
       r < (rows); r = (rows))

// --- GRID_ROWS_VECTORS
/* Loops as GRID_ROW_VECTORS, but over `k` rows at a time. EACH_OF_ROWS in the body loops over these
 * rows; code that is common to all rows comes before it. */
#define GRID_ROWS_VECTORS(n, T, r, c, rows, columns, k)                                            \
  for (T r##_at = (T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x, r##_first = 0, c = 0;            \
       (r##_first = r##_at / ((columns) / (n)),                                                    \
        c = (r##_at - r##_first * ((columns) / (n))) * (n),                                        \
        r##_first < ((rows) + (k)-1) / (k));                                                       \
       r##_at += (T)gridDim.x * (T)blockDim.x)

// --- EACH_OF_ROWS
/* Loops over the `k` rows of a thread. They are as far apart as possible: neighbouring threads have
 * neighbouring rows. */
#define EACH_OF_ROWS(T, r, rows, k)                                                                \
  _Pragma("unroll 2") for (T r##_k = 0, r = r##_first;                                             \
                           r##_k < (k) && ((rows) % (k) == 0 || r < (rows));                       \
                           r##_k++, r += ((rows) + (k)-1) / (k))

// --- EACH_TAP
/* Loops over each element k of a window, k in [0, n); n is a literal. */
#define EACH_TAP(k, n) _Pragma("unroll 9") for (int k = 0; k < (n); k++)

// --- GRID_VECTORS
/* Loops as EACH_VECTOR, but with a grid-stride loop for any launch. */
#define GRID_VECTORS(n, T, i, count)                                                               \
  for (T i = ((T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x) * (n); i < (count);                  \
       i += (T)gridDim.x * (T)blockDim.x * (n))

// --- GRID_ROW_VECTORS
/* Loops as EACH_ROW_VECTOR, but with a grid-stride loop for any launch. */
#define GRID_ROW_VECTORS(n, T, r, c, rows, columns)                                                \
  for (T r##_at = (T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x, r = 0, c = 0;                    \
       r##_at < (T)(rows) * ((columns) / (n)) &&                                                   \
       (r = r##_at / ((columns) / (n)), c = (r##_at - r * ((columns) / (n))) * (n), 1);            \
       r##_at += (T)gridDim.x * (T)blockDim.x)

// --- TABLE
/* Declares constant numbers for all threads: TABLE(T, name) = { .. } */
#define TABLE(T, name) static __constant__ const T name[]

// --- ampc_nf4
/* Returns the NF4 value of element i, whose code is in the upper half of the byte if i is even.
 * Lanes that read different elements of a table in constant memory would wait for each other, so
 * bits of the code select the value. */
DEVICE real ampc_nf4(real pair, long long i)
{
  int c = i & 1 ? (int)pair & 15 : (int)pair >> 4;
  real a = c & 1 ? R(-0.6961928009986877) : R(-1.0);
  real b = c & 1 ? R(-0.39491748809814453) : R(-0.5250730514526367);
  real d = c & 1 ? R(-0.18477343022823334) : R(-0.28444138169288635);
  real e = c & 1 ? R(0.0) : R(-0.09105003625154495);
  real f = c & 1 ? R(0.16093020141124725) : R(0.07958029955625534);
  real g = c & 1 ? R(0.33791524171829224) : R(0.24611230194568634);
  real h = c & 1 ? R(0.5626170039176941) : R(0.44070982933044434);
  real k = c & 1 ? R(1.0) : R(0.7229568362236023);
  real low = c & 4 ? (c & 2 ? e : d) : (c & 2 ? b : a);
  real high = c & 4 ? (c & 2 ? k : h) : (c & 2 ? g : f);
  return c & 8 ? high : low;
}

// --- ONE_THREAD
/* Only one thread of the launch executes the statement. */
#define ONE_THREAD if (blockIdx.x == 0 && threadIdx.x == 0)

// --- ALONE
/* A block executes the statement after it as if it were the only block of the launch. */
typedef struct ampc_size { unsigned x; } ampc_size;
#define ALONE for (ampc_size blockIdx UNUSED = {0}, gridDim = {1}; gridDim.x; gridDim.x = 0)

// --- ON_BLOCK
/* Only block k executes the statement after it, as if it were the only block of the launch. */
#define ON_BLOCK(k) if (blockIdx.x == (k)) ALONE

// --- last_block
/* Each block counts its arrival in `arrived`. Returns 1 in the block that arrives last: it can read
 * what all blocks have stored. */
DEVICE int last_block(unsigned *arrived)
{
  __shared__ int last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    if (last) *arrived = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

// --- LAST_BLOCK
/* Only the block that arrives here last executes the code that follows. */
#define LAST_BLOCK(state)                                                                          \
  if (!last_block(&(state)->arrived)) return

// --- LEAVE_FROM_BLOCK
/* Blocks k and above return here. */
#define LEAVE_FROM_BLOCK(k)                                                                        \
  if (blockIdx.x >= (k)) return

// --- FIRST_BLOCK
/* Only block 0 continues, whatever the grid is. */
#define FIRST_BLOCK                                                                                \
  if (blockIdx.x > 0) return

// --- BLOCK_MEETS
/* Barrier: all threads of the block wait here; then each can read what the others have stored. */
#define BLOCK_MEETS __syncthreads()

// --- ROWS_OF_WARP
#define ROWS_OF_WARP(threads) ((threads) < 32 ? 32 / (threads) : 1)

// --- ROW_LOOP
/* Loops over rows in [0, rows). `threads` threads of a block of 256 share a row: all 256, or a
 * power of 2 up to 32. Lanes of a warp for which no row is left (row_on is 0) process no elements,
 * but take part in shuffles. */
#define ROW_LOOP(threads, T, row, rows)                                                            \
  for (T row##_at = ((T)blockIdx.x * 256 + (T)threadIdx.x) / (threads), row UNUSED = 0,            \
         row_on = 1, row_lane = (T)threadIdx.x % (threads);                                        \
       row##_at / ROWS_OF_WARP(threads) * ROWS_OF_WARP(threads) < (rows) &&                        \
       (row_on = (rows) % ROWS_OF_WARP(threads) == 0 || row##_at < (rows),                         \
       row = row_on ? row##_at : (rows) - 1, 1);                                                   \
       row##_at += (T)gridDim.x * 256 / (threads))

// --- ROW_ONCE
/* Executes the statement in one thread of the row. */
#define ROW_ONCE if (row_on && row_lane == 0)

// --- PRAGMA
#define PRAGMA(text) _Pragma(#text)

// --- ROW_WALK
/* Loops over the thread's vectors of n elements [c, c + n) in [from, from + length). For short rows
 * the loop is unrolled completely, so numbers that one walk has loaded or computed are in registers
 * for the next walk. */
#define ROW_WALK(n, threads, T, c, from, length, ...)                                              \
  if (row_on) {                                                                                    \
    PRAGMA(unroll ((n) == 1 ? 8 : 32 / (n)))                                                       \
    for (T c##_at = 0; c##_at < (length) / ((threads) * (n)); c##_at++) {                          \
      const T c = (from) + (c##_at * (threads) + row_lane) * (n);                                  \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
    if ((length) % ((threads) * (n)) != 0 && row_lane * (n) < (length) % ((threads) * (n))) {      \
      const T c = (from) + (length) / ((threads) * (n)) * ((threads) * (n)) + row_lane * (n);      \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  }

// --- ROW_EACH
/* Loops over the thread's vectors of n elements [c, c + n) in [0, length); n divides length. The
 * body has no reductions. */
#define ROW_EACH(n, threads, T, c, length, ...)                                                    \
  ROW_WALK(n, threads, T, c, 0, length, __VA_ARGS__)

// --- ROW_REDUCE
/* Loops over the thread's vectors of n elements [c, c + n) in [0, length), with reductions. A
 * thread has one partial result for all elements that it walks; then the threads of the row combine
 * their results. */
#define ROW_REDUCE(n, threads, T, c, length, ...)                                                  \
  ROW_WALK(n, threads, T, c, 0, length, __VA_ARGS__)

// --- ROW_REDUCE_LONG
/* Loops as ROW_REDUCE, but in stretches of 64 elements per thread. After each stretch `ends` adds
 * the partial sum to a total and restarts it at 0: an addition to a long sum loses more bits. */
#define ROW_REDUCE_LONG(n, threads, T, c, length, ends, ...)                                       \
  for (T c##_from = 0; c##_from + 64 * (threads) <= (length); c##_from += 64 * (threads)) {        \
    ROW_WALK(n, threads, T, c, c##_from, 64 * (threads), __VA_ARGS__)                              \
    ends                                                                                           \
  }                                                                                                \
  if ((length) % (64 * (threads))) {                                                               \
    ROW_WALK(n, threads, T, c, (length) / (64 * (threads)) * (64 * (threads)),                     \
             (length) % (64 * (threads)), __VA_ARGS__)                                             \
    ends                                                                                           \
  }

// --- ROW_PART_LONG
/* As ROW_PART, but `name` is the sum of one stretch; `name`_sum is the total of all stretches. */
#define ROW_PART_LONG(T, name, start) T name = (start), name##_sum = (start)

// --- ROW_END
#define ROW_END(name)                                                                              \
  name##_sum += name;                                                                              \
  name = 0

// --- ROW_PART
/* Declares the partial result of a reduction with its initial value. ROW_PUT refers to it. */
#define ROW_PART(T, name, start) T name = (start)

// --- ROW_PUT
#define ROW_PUT(name) name

// --- ROW_TREE
/* Defines a function that combines the partial results of a row's threads in a fixed order. All
 * these threads get the result. */
#define ROW_TREE(T, name, JOIN)                                                                    \
  DEVICE T name(T part, int threads)                                                               \
  {                                                                                                \
    __shared__ T of_warp[8];                                                                       \
    for (int step = (threads < 32 ? threads : 32) / 2; step > 0; step /= 2)                        \
      part = JOIN(part, __shfl_xor_sync(0xffffffffu, part, step));                                 \
    if (threads > 32) {                                                                            \
      __syncthreads(); /* all threads have read of_warp */                                         \
      if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = part;                                 \
      __syncthreads();                                                                             \
      part = of_warp[0];                                                                           \
      for (unsigned i = 1; i < 8; i++) part = JOIN(part, of_warp[i]);                              \
    }                                                                                              \
    return part;                                                                                   \
  }

// --- ROW_SHARE
/* Declares the thread's share of the row: the contiguous elements [first, end) of [0, length). */
#define ROW_SHARE(threads, T, first, end, length)                                                  \
  const T first = row_on ? (T)((long long)(length)*row_lane / (threads)) : 0;                      \
  const T end = row_on ? (T)((long long)(length) * (row_lane + 1) / (threads)) : 0

// --- ROW_BEFORE
/* Defines a function that combines the partial results of the row's threads before this one, in
 * their order; in the first thread it returns `start`. Lanes exchange values, in each step at twice
 * the distance. `part` then combines the values of the lane's group, `before` the values of the
 * lanes before it. */
#define ROW_BEFORE(T, name, JOIN, start)                                                           \
  DEVICE T name(T part, int threads)                                                               \
  {                                                                                                \
    __shared__ T of_warp[8];                                                                       \
    T before = (start);                                                                            \
    for (int step = 1; step < (threads < 32 ? threads : 32); step *= 2) {                          \
      const T other = __shfl_xor_sync(0xffffffffu, part, step);                                    \
      const int behind = (int)threadIdx.x & step;                                                  \
      if (behind) before = JOIN(other, before);                                                    \
      part = behind ? JOIN(other, part) : JOIN(part, other);                                       \
    }                                                                                              \
    if (threads > 32) {                                                                            \
      __syncthreads(); /* all threads have read of_warp */                                         \
      if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = part;                                 \
      __syncthreads();                                                                             \
      for (unsigned i = threadIdx.x / 32; i > 0; i--) before = JOIN(of_warp[i - 1], before);       \
    }                                                                                              \
    return before;                                                                                 \
  }

// --- row_before_line
/* Each thread of a row has a linear function y -> a y + b. Applies the functions of the threads
 * before this one to 0, in order. It works like ROW_BEFORE. */
DEVICE double row_before_line(double a, double b, int threads)
{
  __shared__ double a_of_warp[8], b_of_warp[8];
  double before_a = 1, before_b = 0;
  for (int step = 1; step < (threads < 32 ? threads : 32); step *= 2) {
    const double other_a = __shfl_xor_sync(0xffffffffu, a, step);
    const double other_b = __shfl_xor_sync(0xffffffffu, b, step);
    if ((int)threadIdx.x & step) { /* the other lane is before this one */
      before_b += before_a * other_b;
      before_a *= other_a;
      b += a * other_b;
    } else {
      b = other_a * b + other_b;
    }
    a *= other_a;
  }
  if (threads > 32) {
    __syncthreads(); /* all threads have read both */
    if (threadIdx.x % 32 == 0) a_of_warp[threadIdx.x / 32] = a;
    if (threadIdx.x % 32 == 0) b_of_warp[threadIdx.x / 32] = b;
    __syncthreads();
    double y = 0;
    for (unsigned i = 0; i < threadIdx.x / 32; i++) y = a_of_warp[i] * y + b_of_warp[i];
    return before_a * y + before_b;
  }
  return before_b;
}

