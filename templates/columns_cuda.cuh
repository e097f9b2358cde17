/* Primitives for kernels over columns: the threads of a block share the rows of some neighbouring
 * columns. columns_cpu.h defines the same names for the CPU. */
// --- COLUMN_LOOP
/* Loops over channels of pools. A thread takes one channel, so neighbouring threads read
 * neighbouring memory. */
#define COLUMN_LOOP(T, o, first, width, outer, inner)                                              \
  for (T o##_at = (T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x, o = 0, first = 0, width = 1;     \
       o##_at < (T)(outer) * (inner) && (o = o##_at / (inner), first = o##_at % (inner), 1);       \
       o##_at += (T)gridDim.x * (T)blockDim.x)

// --- EACH_COLUMN
#define EACH_COLUMN(j, width) for (int j = 0; j < (int)(width); j++)

// --- COLUMN_TILES
/* Loops over the columns [0, inner) of each o in [0, outer), for reductions over an axis that is
 * not the last. A block takes a tile of `lanes` vectors of n columns. Its 256 threads, `lanes` of
 * them next to each other, divide the rows of the tile. A thread without columns walks no rows, but
 * takes part in barriers. */
#define COLUMN_TILES(n, T, o, column, outer, inner, lanes)                                         \
  for (T o##_at = (T)blockIdx.x, o = 0, column = 0, tile_row = 0,                                  \
         tiles = ((inner) + (lanes) * (n) - 1) / ((lanes) * (n)), tile_rows = 256 / (lanes);       \
       o##_at < (T)(outer) * tiles &&                                                              \
       (o = o##_at / tiles,                                                                        \
       column = ((o##_at - o * tiles) * (lanes) + (T)threadIdx.x % (lanes)) * (n),                 \
       tile_row = column < (inner) ? (T)threadIdx.x / (lanes) : 256,                               \
       column = column < (inner) ? column : (inner) - (n), 1);                                     \
       o##_at += (T)gridDim.x)

// --- COLUMN_PART
/* Declares a partial result with its initial value for each column of the thread. */
#define COLUMN_PART(n, T, name, start)                                                             \
  T name[n];                                                                                       \
  VECTOR_EACH(n, name##_at) name[name##_at] = (start)

// --- COLUMN_LOCAL
/* Declares one value for each column of the thread. */
#define COLUMN_LOCAL(n, T, name) T name[n]

// --- COLUMN_WALK
/* Loops over the thread's rows c in [begin, begin + size). `whole` is true if no row is beyond
 * `all`: then the loop has a known length and loads `at_once` rows at once. */
#define COLUMN_WALK(at_once, T, c, begin, size, all, whole, ...)                                   \
  if (tile_row < tile_rows) {                                                                      \
    if (whole) {                                                                                   \
      PRAGMA(unroll at_once) for (T c##_at = 0; c##_at < (size) / tile_rows; c##_at++) {           \
        const T c UNUSED = (begin) + tile_row + c##_at * tile_rows;                                \
        __VA_ARGS__                                                                                \
      }                                                                                            \
      if (tile_row < (size) % tile_rows) {                                                         \
        const T c UNUSED = (begin) + tile_row + (size) / tile_rows * tile_rows;                    \
        __VA_ARGS__                                                                                \
      }                                                                                            \
    } else {                                                                                       \
      for (T c = (begin) + tile_row; c < (all); c += tile_rows) {                                  \
        __VA_ARGS__                                                                                \
      }                                                                                            \
    }                                                                                              \
  }

// --- COLUMN_PIECE
#define COLUMN_PIECE(at_once, T, c, begin, size, all, ...)                                         \
  COLUMN_WALK(at_once, T, c, begin, size, all, (all) % (size) == 0 || (begin) + (size) <= (all),   \
              __VA_ARGS__)

// --- COLUMN_ROWS
/* Loops over the thread's rows c in [begin, begin + size) with c < all. `begin` is a multiple of
 * `size`. */
#define COLUMN_ROWS(...) COLUMN_PIECE(4, __VA_ARGS__)

// --- COLUMN_STRETCHES
#define COLUMN_STRETCHES(at_once, T, c, begin, size, all, ends, ...)                               \
  if ((size) <= 64 * tile_rows) {                                                                  \
    COLUMN_PIECE(at_once, T, c, begin, size, all, __VA_ARGS__)                                     \
    ends                                                                                           \
  } else {                                                                                         \
    const T c##_all = (begin) + (size) < (all) ? (begin) + (size) : (all);                         \
    for (T c##_from = (begin); c##_from < c##_all; c##_from += 64 * tile_rows) {                   \
      COLUMN_WALK(at_once, T, c, c##_from, 64 * tile_rows, c##_all,                                \
                  c##_from + 64 * tile_rows <= c##_all, __VA_ARGS__)                               \
      ends                                                                                         \
    }                                                                                              \
  }

// --- COLUMN_ROWS_LONG
/* Loops as COLUMN_ROWS, but in stretches of 64 rows per thread. After each stretch `ends` adds the
 * partial sums to totals and restarts them at 0: an addition to a long sum loses more bits. */
#define COLUMN_ROWS_LONG(...) COLUMN_STRETCHES(4, __VA_ARGS__)

// --- COLUMN_ROWS_CROWDED
/* Loops as COLUMN_ROWS_LONG for kernels that lack registers: it loads fewer rows at once. */
#define COLUMN_ROWS_CROWDED(...) COLUMN_STRETCHES(2, __VA_ARGS__)

// --- COLUMN_END
#define COLUMN_END(n, name)                                                                        \
  VECTOR_EACH(n, name##_at) {                                                                      \
    name[name##_at] += name##_part[name##_at];                                                     \
    name##_part[name##_at] = 0;                                                                    \
  }

// --- COLUMN_NEAR
/* Loops over 4 rows spread over the part, in every thread. A part of fewer rows repeats some. */
#define COLUMN_NEAR(T, c, begin, size, all, ...)                                                   \
  _Pragma("unroll") for (T c##_at = 0; c##_at < 4; c##_at++) {                                     \
    const T c##_all = (all) % (size) == 0 || (begin) + (size) <= (all) ? (size) : (all) - (begin); \
    const T c = (begin) + c##_all * c##_at / 4;                                                    \
    __VA_ARGS__                                                                                    \
  }

// --- COLUMN_ONCE
/* Executes the statement in one thread for each column. */
#define COLUMN_ONCE if (tile_row == 0)

// --- block_room
/* Returns shared memory of the functions that combine the columns of a block. All functions use the
 * same bytes, so each begins with a barrier. */
DEVICE void *block_room(void)
{
  __shared__ __align__(16) unsigned char room[8 * 256 * 8];
  return room;
}

// --- COLUMN_TREE
/* Defines a function that combines the partial results of a block in a fixed order. part[j], j in
 * [0, n), becomes the result for column j in all threads of that column. */
#define COLUMN_TREE(T, name, JOIN)                                                                 \
  DEVICE void name(T *part, int n, int lanes)                                                      \
  {                                                                                                \
    T *const of_warp = (T *)block_room();                                                          \
    for (int step = lanes; step < 32; step *= 2)                                                   \
      VECTOR_EACH(n, j) part[j] = JOIN(part[j], __shfl_xor_sync(0xffffffffu, part[j], step));      \
    __syncthreads(); /* all threads have read of_warp */                                           \
    if ((int)threadIdx.x % 32 < lanes && threadIdx.x < 256)                                        \
      VECTOR_EACH(n, j)                                                                            \
        of_warp[((int)threadIdx.x / 32 * lanes + (int)threadIdx.x % 32) * n + j] = part[j];        \
    __syncthreads();                                                                               \
    if ((int)threadIdx.x < lanes * n) {                                                            \
      T all = of_warp[threadIdx.x];                                                                \
      for (int i = 1; i < 8; i++) all = JOIN(all, of_warp[i * lanes * n + (int)threadIdx.x]);      \
      of_warp[threadIdx.x] = all;                                                                  \
    }                                                                                              \
    __syncthreads();                                                                               \
    VECTOR_EACH(n, j) part[j] = of_warp[(int)threadIdx.x % lanes * n + j];                         \
  }
