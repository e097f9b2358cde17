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
/* Computes 8 rows by 32 lanes of a product. The sums stay in vector registers. */
DEVICE void tile_part(int lanes, int depth, real *sum, const real *a, int a_row, int a_step,
                      const real *b)
{
  real part[8][32];
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 32; j++) part[i][j] = sum[i * lanes + j];
  for (int k = 0; k < depth; k++)
    for (int i = 0; i < 8; i++) {
      const real factor = a[i * a_row + k * a_step];
      for (int j = 0; j < 32; j++) part[i][j] = ampc_fma(factor, b[k * lanes + j], part[i][j]);
    }
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 32; j++) sum[i * lanes + j] = part[i][j];
}

// --- tile_row
/* Computes one row by 32 lanes. */
DEVICE void tile_row(int lanes, int depth, real *sum, const real *a, int a_step, const real *b)
{
  real part[32];
  for (int j = 0; j < 32; j++) part[j] = sum[j];
  for (int k = 0; k < depth; k++)
    for (int j = 0; j < 32; j++) part[j] = ampc_fma(a[k * a_step], b[k * lanes + j], part[j]);
  for (int j = 0; j < 32; j++) sum[j] = part[j];
}

// --- tile_four
/* Computes four rows by 16 lanes. With an array for each row, their sums stay in registers also if
 * there are only 16 of these. */
DEVICE void tile_four(int lanes, int depth, real *sum, const real *a, int a_row, int a_step,
                      const real *b)
{
  real p[16], q[16], r[16], s[16];
  real *const to[] = {sum, sum + lanes, sum + 2 * lanes, sum + 3 * lanes};
  for (int j = 0; j < 16; j++) p[j] = to[0][j];
  for (int j = 0; j < 16; j++) q[j] = to[1][j];
  for (int j = 0; j < 16; j++) r[j] = to[2][j];
  for (int j = 0; j < 16; j++) s[j] = to[3][j];
  for (int k = 0; k < depth; k++) {
    const real *f = a + k * a_step, *at = b + k * lanes;
    const real f0 = f[0], f1 = f[a_row], f2 = f[2 * a_row], f3 = f[3 * a_row];
    for (int j = 0; j < 16; j++) p[j] = ampc_fma(f0, at[j], p[j]);
    for (int j = 0; j < 16; j++) q[j] = ampc_fma(f1, at[j], q[j]);
    for (int j = 0; j < 16; j++) r[j] = ampc_fma(f2, at[j], r[j]);
    for (int j = 0; j < 16; j++) s[j] = ampc_fma(f3, at[j], s[j]);
  }
  for (int j = 0; j < 16; j++) to[0][j] = p[j];
  for (int j = 0; j < 16; j++) to[1][j] = q[j];
  for (int j = 0; j < 16; j++) to[2][j] = r[j];
  for (int j = 0; j < 16; j++) to[3][j] = s[j];
}

// --- tile_product
/* Computes sum[row, lane] += a[row, k] b[k, lane] over k in [0, depth), in order. a[row, k] is
 * a[row * a_row + k * a_step]. `rows` is a multiple of 8, `lanes` of 32. */
DEVICE void tile_product(int rows, int used, int lanes, int width, int depth, real *sum,
                         const real *a, int a_row, int a_step, const real *b)
{
  (void)rows;
  for (int lane = 0; lane < width; lane += 32)
    for (int row = 0; row < used; row += 8) {
      real *to = sum + row * lanes + lane;
      const real *from = a + row * a_row;
      if (used - row == 1) {
        tile_row(lanes, depth, to, from, a_step, b + lane);
      } else if (used - row <= 4) {
        tile_four(lanes, depth, to, from, a_row, a_step, b + lane);
        tile_four(lanes, depth, to + 16, from, a_row, a_step, b + lane + 16);
      } else {
        tile_part(lanes, depth, to, from, a_row, a_step, b + lane);
      }
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
