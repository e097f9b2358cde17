/* CUDA: what differs from cpu.h, by the same names. Kernels walk their work in strides of the whole
 * launch, so any grid and any block of whole warps will do. */
#define DEVICE static __device__ __forceinline__

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

// --- philox_word
/* 32 bits, of which 64-bit products are made. */
typedef unsigned philox_word;

// --- GRID_LOOP
/* for each i of [0, n) */
#define GRID_LOOP(T, i, n)                                                                         \
  for (T i = (T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x; i < (n);                              \
       i += (T)gridDim.x * (T)blockDim.x)

// --- GRID_ROWS
/* for each r of [0, rows) and c of [0, columns) */
#define GRID_ROWS(T, r, c, rows, columns)                                                          \
  for (T r##_at = (T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x, r = 0, c = 0;                    \
       r##_at < (T)(rows) * (columns) && (r = r##_at / (columns), c = r##_at - r * (columns), 1);  \
       r##_at += (T)gridDim.x * (T)blockDim.x)

// --- ONE_THREAD
/* in one thread of the launch */
#define ONE_THREAD if (blockIdx.x == 0 && threadIdx.x == 0)

// --- ROW_LOOP
/* for each row of [0, rows), all threads of a block together */
#define ROW_LOOP(T, row, rows) for (T row = (T)blockIdx.x; row < (rows); row += (T)gridDim.x)

// --- ROW_EACH
/* for each c of [0, n) of the row; no reductions inside */
#define ROW_EACH(T, c, n) for (T c = (T)threadIdx.x; c < (n); c += (T)blockDim.x)

// --- ROW_ONCE
/* in one thread of the block */
#define ROW_ONCE if (threadIdx.x == 0)

// --- ROW_REDUCE
/* For each c of [0, n): reductions. A thread has one partial result, which takes every element that
 * the thread meets; then the block joins them. */
#define ROW_REDUCE(T, c, n, ...)                                                                   \
  for (T c = (T)threadIdx.x; c < (n); c += (T)blockDim.x) {                                        \
    __VA_ARGS__                                                                                    \
  }

// --- ROW_REDUCE_LONG
/* The same in stretches, `ends` after each of them: Note [long sums] in emit/kernel_loop.c. */
#define ROW_REDUCE_LONG(T, c, n, ends, ...)                                                        \
  for (T c = (T)threadIdx.x; c < (n);) {                                                           \
    for (int c##_end = 0; c##_end < 64 && c < (n); c##_end++, c += (T)blockDim.x) {                \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
    ends                                                                                           \
  }

// --- ROW_PART_LONG
/* As ROW_PART, and name_sum for what stretches have left. */
#define ROW_PART_LONG(T, name, start) T name = (start), name##_sum = (start)

// --- ROW_END
#define ROW_END(name)                                                                              \
  name##_sum += name;                                                                              \
  name = 0

// --- ROW_PART
/* The partial result of a reduction, before any element; ROW_PUT names it. */
#define ROW_PART(T, name, start) T name = (start)

// --- ROW_PUT
#define ROW_PUT(name) name

// --- ROW_TREE
/* Defines a function that joins the partial results of a block, in a fixed order, and gives the
 * result to all its threads. */
#define ROW_TREE(T, name, JOIN)                                                                    \
  DEVICE T name(T part)                                                                            \
  {                                                                                                \
    __shared__ T of_warp[32];                                                                      \
    for (int step = 16; step > 0; step /= 2)                                                       \
      part = JOIN(part, __shfl_xor_sync(0xffffffffu, part, step));                                 \
    if (blockDim.x > 32) {                                                                         \
      __syncthreads(); /* the last use of of_warp is over */                                       \
      if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = part;                                 \
      __syncthreads();                                                                             \
      part = of_warp[0];                                                                           \
      for (unsigned i = 1; i < blockDim.x / 32; i++) part = JOIN(part, of_warp[i]);                \
    }                                                                                              \
    return part;                                                                                   \
  }

// --- COLUMN_LOOP
/* Reductions over an axis that is not the last: a thread has a column to itself, so that memory is
 * read in its order by neighbouring threads. */
#define COLUMNS 1
#define COLUMN_LOOP(T, o, first, width, outer, inner)                                              \
  for (T o##_at = (T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x, o = 0, first = 0, width = 1;     \
       o##_at < (T)(outer) * (inner) && (o = o##_at / (inner), first = o##_at % (inner), 1);       \
       o##_at += (T)gridDim.x * (T)blockDim.x)

// --- EACH_COLUMN
#define EACH_COLUMN(j, width) for (int j = 0; j < (int)(width); j++)
