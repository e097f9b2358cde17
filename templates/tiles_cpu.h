/* CPU: products of small matrices that a block keeps to itself; a block has one thread.
 * tiles_cuda.cuh defines the same names for CUDA. */

// --- UNUSED
#define UNUSED __attribute__((unused)) /* for loop variables that a body may ignore */

// --- BLOCK_LOOP
/* Loops over units in [0, n); all threads of a block work on one unit. */
#define BLOCK_LOOP(T, unit, n)                                                                     \
  for (T unit = (T)((long long)(n)*block_index / block_count),                                     \
         unit##_end = (T)((long long)(n) * (block_index + 1) / block_count);                       \
       unit < unit##_end; unit++)

// --- BLOCK_ROOM
/* Declares name[n], which the threads of a block share. */
#define BLOCK_ROOM(T, name, n) T name[n] __attribute__((aligned(64)))

// --- BLOCK_EACH
/* Loops over i in [0, n), each in one thread; n is at most 256. */
#define BLOCK_EACH(i, n) for (int i = 0; i < (n); i++)

// --- BLOCK_CELLS
/* Loops over row in [0, rows) and c in [0, columns), divided among the threads of a block. */
#define BLOCK_CELLS(row, c, rows, columns)                                                         \
  for (int row = 0; row < (rows); row++)                                                           \
    for (int c = 0; c < (columns); c++)

// --- TILE_WIDTH
/* The number of lanes of a tile that are computed if only `valid` of them are used. Note [tiles]: a
 * tile is [rows, lanes]; its lanes are neighbours in vectors. A step with fewer rows or lanes skips
 * the other ones. */
#define TILE_WIDTH(lanes, valid) (((valid) + 31) / 32 * 32)

// --- TILE_SUMS
/* Declares name[at], a number for each of the thread's elements of a tile. */
#define TILE_SUMS(T, name, rows, lanes) T name[(rows) * (lanes)] __attribute__((aligned(64)))

// --- TILE_CLEAR
#define TILE_CLEAR(name, rows, lanes)                                                              \
  for (int name##_at = 0; name##_at < (rows) * (lanes); name##_at++) name[name##_at] = 0

// --- TILE_EACH
/* Loops over the elements in the first `used` rows and `width` lanes. */
#define TILE_EACH(row, lane, at, rows, used, lanes, width, ...)                                    \
  for (int row = 0; row < (used); row++)                                                           \
    for (int lane = 0; lane < (width); lane++) {                                                   \
      const int at UNUSED = row * (lanes) + lane;                                                  \
      __VA_ARGS__                                                                                  \
    }

// --- tile_part
/* Computes up to 8 rows by 32 lanes of a product. The sums stay in vector registers. */
DEVICE void tile_part(int rows, int lanes, int depth, real *sum, const real *a, int a_row,
                      int a_step, const real *b)
{
  real part[8][32];
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < 32; j++) part[i][j] = sum[i * lanes + j];
  for (int k = 0; k < depth; k++)
    for (int i = 0; i < rows; i++) {
      const real factor = a[i * a_row + k * a_step];
      for (int j = 0; j < 32; j++) part[i][j] = ampc_fma(factor, b[k * lanes + j], part[i][j]);
    }
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < 32; j++) sum[i * lanes + j] = part[i][j];
}

// --- tile_product
/* Computes sum[row, lane] += a[row, k] b[k, lane] over k in [0, depth), in order. a[row, k] is
 * a[row * a_row + k * a_step]. `rows` is a multiple of 8, `lanes` of 32. */
DEVICE void tile_product(int rows, int used, int lanes, int width, int depth, real *sum,
                         const real *a, int a_row, int a_step, const real *b)
{
  (void)rows;
  for (int lane = 0; lane < width; lane += 32) {
    int row = 0;
    for (; row + 8 <= used; row += 8)
      tile_part(8, lanes, depth, sum + row * lanes + lane, a + row * a_row, a_row, a_step,
                b + lane);
    for (int left = used - row; left > 0; left--, row++)
      tile_part(1, lanes, depth, sum + row * lanes + lane, a + row * a_row, a_row, a_step,
                b + lane);
  }
}

// --- tile_most
/* Sets most[lane] to the maximum of most[lane] and the elements of that lane. */
DEVICE void tile_most(real *most, const real *tile, int used, int lanes, int width)
{
  for (int row = 0; row < used; row++)
    for (int lane = 0; lane < width; lane++)
      most[lane] = ampc_max(tile[row * lanes + lane], most[lane]);
}

// --- tile_add
DEVICE void tile_add(real *total, const real *tile, int used, int lanes, int width)
{
  for (int row = 0; row < used; row++)
    for (int lane = 0; lane < width; lane++) total[lane] += tile[row * lanes + lane];
}
