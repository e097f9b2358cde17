/* CPU: a block has one thread, and every block of a launch takes one contiguous share of the work,
 * so that kernels are plain loops which the compiler vectorises. The same kernel text runs on CUDA
 * with cuda.cuh in this place; only what stands here differs. */
float fmaf(float, float, float);
float sqrtf(float);
float floorf(float);
float ceilf(float);
float rintf(float);
float fabsf(float);
float fmodf(float, float);
double fma(double, double, double);
double floor(double);

#define __global__ static
#define DEVICE     static inline

/* which block this thread runs, of how many */
static _Thread_local unsigned block_index, block_count;

DEVICE unsigned float_bits(float x)
{
  union {
    float number;
    unsigned bits;
  } u;
  u.number = x;
  return u.bits;
}

DEVICE float bits_float(unsigned bits)
{
  union {
    unsigned bits;
    float number;
  } u;
  u.bits = bits;
  return u.number;
}

/* Where the share of block k of all begins; whole cache lines, so that blocks share none. */
DEVICE long long share(long long n, unsigned k)
{
  long long at = (n + 63) / 64 * k / block_count * 64;
  return at < n ? at : n;
}

/* for each i of [0, n) */
#define GRID_LOOP(T, i, n)                                                                         \
  for (T i = (T)share(n, block_index), grid_end = (T)share(n, block_index + 1); i < grid_end; i++)

/* for each r of [0, rows) and c of [0, columns) */
#define GRID_ROWS(T, r, c, rows, columns)                                                          \
  for (T grid_at = (T)share((long long)(rows) * (columns), block_index),                           \
         grid_end = (T)share((long long)(rows) * (columns), block_index + 1), r = 0, row_end = 0;  \
       grid_at < grid_end &&                                                                       \
       (r = grid_at / (columns), row_end = grid_end - r * (columns), 1);                           \
       grid_at = (r + 1) * (columns))                                                              \
    for (T c = grid_at - r * (columns),                                                            \
           c##_end = row_end < (columns) ? row_end : (columns);                                    \
         c < c##_end; c++)

/* for each row of [0, rows), all threads of the block together */
#define ROW_LOOP(T, row, rows)                                                                     \
  for (T row = (T)((long long)(rows)*block_index / block_count),                                   \
         row##_end = (T)((long long)(rows) * (block_index + 1) / block_count);                     \
       row < row##_end; row++)

/* for each c of [0, n) of the row; no reductions inside */
#define ROW_EACH(c, n) for (int c = 0; c < (n); c++)

/* once a row */
#define ROW_ONCE

/* Note [lanes]: a reduction keeps 16 partial results, element c going to number c % 16, and joins
 * them as a tree. Any vector unit of up to 16 lanes gives the same bits, and compilers see vector
 * operations where they must not reorder a float sum. The body stands twice: whole 16s, the rest. */
#define ROW_REDUCE(c, n, ...)                                                                      \
  do {                                                                                             \
    for (int lane_at = 0; lane_at + 16 <= (n); lane_at += 16) {                                    \
      for (int lane = 0; lane < 16; lane++) {                                                      \
        const int c = lane_at + lane;                                                              \
        __VA_ARGS__                                                                                \
      }                                                                                            \
    }                                                                                              \
    for (int lane = 0; lane < (n) % 16; lane++) {                                                  \
      const int c = (n) / 16 * 16 + lane;                                                          \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  } while (0)

/* ROW_PART declares the partial results of `name`, ROW_PUT is used inside of ROW_REDUCE, and the
 * row_* functions join. */
#define ROW_PART(T, name, start)                                                                   \
  T name[16];                                                                                      \
  for (int lane = 0; lane < 16; lane++) name[lane] = (start)
#define ROW_PUT(name) name[lane]

#define ROW_TREE(T, name, JOIN)                                                                    \
  DEVICE T name(T *part)                                                                           \
  {                                                                                                \
    for (int i = 0; i < 8; i++) part[i] = JOIN(part[i], part[i + 8]);                              \
    for (int i = 0; i < 4; i++) part[i] = JOIN(part[i], part[i + 4]);                              \
    for (int i = 0; i < 2; i++) part[i] = JOIN(part[i], part[i + 2]);                              \
    return JOIN(part[0], part[1]);                                                                 \
  }
