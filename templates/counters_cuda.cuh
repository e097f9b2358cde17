/* CUDA: the rest of the prelude: rounding, counters that a block keeps in shared memory, rows
 * whose length is odd, and sums of rows that a list names. cpu.h defines the same names for the
 * CPU. */

// --- round_f16
DEVICE real round_f16(real x)
{
  return from_f16(to_f16(x));
}

// --- round_bf16
/* Returns from_bf16(to_bf16(x)). Only pairs are converted at full rate. The pair of x (upper half)
 * and 0 (lower half) has the bits of the result. */
DEVICE real round_bf16(real x)
{
#if __CUDA_ARCH__ >= 800
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"((float)x), "f"(0.0f));
  return (real)__uint_as_float(pair);
#else
  return from_bf16(to_bf16(x));
#endif
}

// --- COUNTERS
/* Declares n counters of a block and sets them to 0. COUNT adds 1 to counter k for element j of a
 * vector. After counting, EACH_COUNTER loops over the counters and COUNTED(name, k) reads one. */
#define COUNTERS(name, n)                                                                          \
  __shared__ unsigned name[n];                                                                     \
  __syncthreads(); /* all have read the last row's counters */                                     \
  for (unsigned k = threadIdx.x; k < (n); k += blockDim.x) name[k] = 0;                            \
  __syncthreads()
#define COUNT(name, j, k) atomicAdd(&name[k], 1u)
#define COUNTED(name, k)  name[k]
#define EACH_COUNTER(k, n)                                                                         \
  __syncthreads();                                                                                 \
  for (unsigned k = threadIdx.x; k < (n); k += blockDim.x)

// --- ROW_ODD
/* For rows whose length is no multiple of n: runs `whole`, the loop over the row's whole vectors,
 * and then the body once more for the last elements, one a thread. vector_width is the number of
 * elements that the body processes at once. */
#define ROW_ODD(n, T, c, length, whole, ...)                                                       \
  {                                                                                                \
    enum { vector_width = (n) };                                                                   \
    whole                                                                                          \
  }                                                                                                \
  if (row_on && row_lane < (length) % (n)) {                                                       \
    enum { vector_width = 1 };                                                                     \
    const T c = (length) / (n) * (n) + row_lane;                                                   \
    __VA_ARGS__                                                                                    \
  }

// --- ROW_EACH_ODD
#define ROW_EACH_ODD(n, threads, T, c, length, ...)                                                \
  ROW_ODD(n, T, c, length, ROW_EACH(n, threads, T, c, (length) / (n) * (n), __VA_ARGS__),          \
          __VA_ARGS__)

// --- ROW_REDUCE_ODD
#define ROW_REDUCE_ODD(n, threads, T, c, length, ...)                                              \
  ROW_EACH_ODD(n, threads, T, c, length, __VA_ARGS__)

// --- ROW_REDUCE_LONG_ODD
#define ROW_REDUCE_LONG_ODD(n, threads, T, c, length, ends, ...)                                   \
  ROW_ODD(n, T, c, length,                                                                         \
          ROW_REDUCE_LONG(n, threads, T, c, (length) / (n) * (n), ends, __VA_ARGS__), __VA_ARGS__) \
  ends

// --- ROW_SUMS_EACH
/* Loops over the columns c of [0, length) of this thread. Its register c##_at is for c. */
#define ROW_SUMS_EACH(most, threads, T, c, length, ...)                                            \
  _Pragma("unroll") for (int c##_at = 0; c##_at < ((most) + (threads)-1) / (threads); c##_at++) {  \
    const T c = c##_at * (threads) + row_lane;                                                     \
    if (c < (length)) {                                                                            \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  }

// --- ROW_SUMS
/* A scatter-add of rows: for n = 0 .. count - 1, in this order, to[c] += VALUE for all c of
 * [0, length). VALUE, the last argument, is an expression in i = from + c. `to` and `from` are
 * expressions in n; `to` points to row rows[n] of the result. length <= most, a literal. If
 * consecutive n have equal rows[n], the thread keeps their sums in registers, and loads several
 * values before it adds the first. */
#define ROW_SUMS(most, threads, T, c, length, n, count, rows, to, i, from, ...)                    \
  for (int n = 0; n < (count);) {                                                                  \
    int n##_end = n + 1;                                                                           \
    while (n##_end < (count) && (rows)[n##_end] == (rows)[n]) n##_end++;                           \
    real *const n##_to = (to);                                                                     \
    real n##_sum[((most) + (threads)-1) / (threads)];                                              \
    ROW_SUMS_EACH(most, threads, T, c, length, n##_sum[c##_at] = n##_to[c];)                       \
    PRAGMA(unroll 8) for (; n < n##_end; n++) {                                                    \
      const T n##_from = (from);                                                                   \
      ROW_SUMS_EACH(most, threads, T, c, length, const T i = n##_from + c;                         \
                    n##_sum[c##_at] += __VA_ARGS__;)                                               \
    }                                                                                              \
    ROW_SUMS_EACH(most, threads, T, c, length, n##_to[c] = n##_sum[c##_at];)                       \
  }

// --- GRID_CODES
/* Loops over code blocks of 256 elements in [0, count), which is a multiple of 256. A warp has a
 * block, a thread 8 elements of it. ROW_CODES loops over those of a row, with reductions. */
#define GRID_CODES(T, i, count) GRID_VECTORS(8, T, i, count)

// --- ROW_CODES
#define ROW_CODES(threads, T, c, length, ...) ROW_REDUCE(8, threads, T, c, length, __VA_ARGS__)

// --- ROW_PUT_CODE
#define ROW_PUT_CODE(name) name

// --- row_most_key
/* Returns the largest key of the threads of a warp. */
DEVICE unsigned row_most_key(unsigned key)
{
  for (int step = 16; step > 0; step /= 2) {
    const unsigned other = __shfl_xor_sync(0xffffffffu, key, step);
    key = other > key ? other : key;
  }
  return key;
}

// --- CODES_ONCE
#define CODES_ONCE if (threadIdx.x % 32 == 0)
