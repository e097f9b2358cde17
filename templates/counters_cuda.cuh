/* CUDA: counters that a block keeps in shared memory, and rows whose length is odd. cpu.h defines the
 * same names for the CPU. */

// --- round_f16
DEVICE real round_f16(real x)
{
  return from_f16(to_f16(x));
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
/* For rows whose length is no multiple of n: runs `whole`, the loop over the row's whole vectors, and
 * then the body once more for the last elements, one a thread. vector_width is the number of elements
 * that the body processes at once. */
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
