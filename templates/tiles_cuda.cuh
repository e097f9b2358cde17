/* CUDA: products of small matrices that a block of 256 threads keeps in shared memory and
 * registers. tiles_cpu.h defines the same names for the CPU. */

// --- BLOCK_LOOP
/* Loops over units in [0, n); all threads of a block work on one unit. */
#define BLOCK_LOOP(T, unit, n) for (T unit = (T)blockIdx.x; unit < (n); unit += (T)gridDim.x)

// --- BLOCK_ROOM
/* Declares name[n], which the threads of a block share. */
#define BLOCK_ROOM(T, name, n) __shared__ __align__(16) T name[n]

// --- BLOCK_EACH
/* Loops over i in [0, n), each in one thread; n is at most 256. */
#define BLOCK_EACH(i, n) for (int i = (int)threadIdx.x; i < (n); i += 256)

// --- BLOCK_CELLS
/* Loops over row in [0, rows) and c in [0, columns), divided among the threads of a block. If
 * `columns` divides 256, a thread has the same column in each iteration. The loop is unrolled by
 * four: more addresses would spill. */
#define BLOCK_CELLS(row, c, rows, columns)                                                         \
  _Pragma("unroll 4") for (int row##_at = (int)threadIdx.x, row = 0, c = 0;                        \
                           row##_at < (rows) * (columns) &&                                        \
                           (row = (int)((unsigned)row##_at / (unsigned)(columns)),                 \
                           c = 256 % (columns) == 0 ? (int)(threadIdx.x % (unsigned)(columns))     \
                                                    : row##_at - row * (columns),                  \
                           1);                                                                     \
                           row##_at += 256)

// --- TILE_WIDTH
/* The number of lanes of a tile that are computed if only `valid` of them are used. Note [tiles]: a
 * tile is [rows, lanes] and is divided among 16 x 16 threads. Thread (y, x) has rows y, y + 16, ..
 * and lanes x, x + 16, .. */
#define TILE_WIDTH(lanes, valid) (lanes)

// --- TILE_ACROSS
#define TILE_ACROSS(lanes) (((lanes) + 15) / 16)

// --- TILE_SUMS
/* Declares name[at], a number for each of the thread's elements of a tile. */
#define TILE_SUMS(T, name, rows, lanes) T name[TILE_ACROSS(rows) * TILE_ACROSS(lanes)]

// --- TILE_CLEAR
#define TILE_CLEAR(name, rows, lanes)                                                              \
  _Pragma("unroll") for (int name##_at = 0; name##_at < TILE_ACROSS(rows) * TILE_ACROSS(lanes);    \
                         name##_at++) name[name##_at] = 0

// --- TILE_EACH
/* Loops over the elements in the first `used` rows and `width` lanes. */
#define TILE_EACH(row, lane, at, rows, used, lanes, width, ...)                                    \
  _Pragma("unroll") for (int at = 0; at < TILE_ACROSS(rows) * TILE_ACROSS(lanes); at++) {          \
    const int row = (int)threadIdx.x / 16 + at / TILE_ACROSS(lanes) * 16;                          \
    const int lane = (int)threadIdx.x % 16 + at % TILE_ACROSS(lanes) * 16;                         \
    if (row < (used) && lane < (width)) { __VA_ARGS__ }                                            \
  }

// --- tile_product
/* Computes sum[row, lane] += a[row, k] b[k, lane] over k in [0, depth), in order. a[row, k] is
 * a[row * a_row + k * a_step]. With fewer than 16 rows or lanes, several threads compute one
 * element. */
DEVICE void tile_product(int rows, int used, int lanes, int width, int depth, real *sum,
                         const real *a, int a_row, int a_step, const real *b)
{
  (void)used, (void)width;
  const int y = (int)threadIdx.x / 16 % (rows < 16 ? rows : 16);
  const int x = (int)threadIdx.x % (lanes < 16 ? lanes : 16);
#pragma unroll 4
  for (int k = 0; k < depth; k++) {
#pragma unroll
    for (int i = 0; i < TILE_ACROSS(rows); i++) {
      const real factor = a[(y + i * 16) * a_row + k * a_step];
#pragma unroll
      for (int j = 0; j < TILE_ACROSS(lanes); j++) {
        real *const at = &sum[i * TILE_ACROSS(lanes) + j];
        *at = ampc_fma(factor, b[k * lanes + x + j * 16], *at);
      }
    }
  }
}

// --- tile_most
/* Sets most[lane] to the maximum of most[lane] and the elements of that lane. */
DEVICE void tile_most(real *most, const real *tile, int used, int lanes, int width)
{
  BLOCK_EACH(lane, width)
  for (int row = 0; row < used; row++)
    most[lane] = ampc_max(tile[row * lanes + lane], most[lane]);
}

// --- tile_add
DEVICE void tile_add(real *total, const real *tile, int used, int lanes, int width)
{
  BLOCK_EACH(lane, width)
  for (int row = 0; row < used; row++) total[lane] += tile[row * lanes + lane];
}
