/* How sums along columns and long rows are split: see columns.h. */
#include "columns.h"
#include "runtime/plan/arithmetic.h"

/* Note [column tiles]
 * A GPU is busy if every multiprocessor has a block and every thread has several rows that it can
 * load at once. Wide tiles read long runs of memory. Narrow tiles give more blocks, and more
 * threads for the rows of each tile. So a tile starts as wide as possible and is halved, down to 32
 * bytes, while there are too few blocks. The parts are enough blocks to fill the largest GPU twice.
 * But each thread gets at least WALK rows in a part, so that the final sum over the threads costs
 * little. */
enum {
  WARP = 32,
  MULTIPROCESSORS = 132,
  WALK = 4, /* rows that a thread loads at once; each thread has a multiple of it in a part */
  WIDEST = 8
};

/* Returns the smallest power of 2 that is at least n, but at most a warp. */
static uint32_t lanes_of(int64_t n)
{
  uint32_t lanes = 1;
  while (lanes < n && lanes < WARP) lanes *= 2;
  return lanes;
}

uint32_t dividing_vector(int64_t n, uint32_t widest)
{
  uint32_t vector = widest;
  while (vector > 1 && n % vector) vector = vector > 4 ? 4 : 1;
  return vector;
}

ColumnTile column_tile(int64_t outer, int64_t length, int64_t inner, uint32_t widest)
{
  ColumnTile t = {.vector = dividing_vector(inner, widest)};
  const uint32_t least = t.vector > 1 ? 2 : WIDEST; /* lanes that together read 32 bytes */
  t.lanes = lanes_of(ceil_div(inner, t.vector));
  while (t.lanes > least && CUDA_BLOCK / t.lanes < length &&
         outer * ceil_div(inner, t.lanes * t.vector) < MULTIPROCESSORS)
    t.lanes /= 2;
  t.tiles = ceil_div(inner, (int64_t)t.lanes * t.vector);
  return t;
}

/* Only the vector is narrowed to get more blocks. The lanes stay, because they determine how rows
 * are divided among threads, and thus the order of the sum. */
ColumnTile column_join_tile(int64_t inner, bool alone)
{
  ColumnTile t = {.vector = dividing_vector(inner, WIDEST)};
  t.lanes = lanes_of(ceil_div(inner, t.vector));
  while (!alone && t.vector > 1 && ceil_div(inner, t.lanes * t.vector) < MULTIPROCESSORS)
    t.vector = t.vector > 4 ? 4 : 1;
  t.tiles = ceil_div(inner, (int64_t)t.lanes * t.vector);
  return t;
}

int64_t column_part_rows(int64_t rows, int64_t channels)
{
  int64_t lanes = lanes_of(ceil_div(channels, WIDEST)), at_once = CUDA_BLOCK / lanes;
  int64_t tiles = ceil_div(channels, lanes * WIDEST);
  int64_t walk = ceil_div(rows, at_once) * tiles / (2 * MULTIPROCESSORS);
  return at_once * (walk < WALK ? WALK : ceil_div(walk, WALK) * WALK);
}

int64_t column_parts(int64_t rows, int64_t channels)
{
  int64_t parts = ceil_div(rows, column_part_rows(rows, channels));
  return parts < 1 ? 1 : parts;
}

/* Returns the number of adjacent elements to sum in parallel, if a whole tensor of n elements is
 * summed: the smallest divisor of n from 16 to 256 that is a multiple of 8, or else of 4, 2 or 1.
 * The CPU adds 16 adjacent numbers at once, GPUs read them in a few vectors, and they leave few
 * partial sums. 0: no such divisor. */
static int64_t side_by_side(int64_t n)
{
  enum { LEAST = 16, MOST = 256 };
  for (int64_t align = 8; align; align /= 2)
    for (int64_t width = LEAST; width <= MOST; width += align)
      if (n % width == 0) return width;
  return 0;
}

int64_t column_split(int64_t rows, int64_t columns)
{
  enum { LONG = 16384, MANY = 16 }; /* LONG: elements per block; MANY: rows per thread */
  if (columns == 1) return rows > LONG ? side_by_side(rows) : 0;
  ColumnTile t = column_tile(1, rows, columns, WIDEST);
  bool busy = t.tiles >= MULTIPROCESSORS / 2;
  return !busy && rows > (int64_t)MANY * (CUDA_BLOCK / t.lanes) ? columns : 0;
}

/* Rows of up to LONG elements are not split: a block reads that many in about the time of the extra
 * launches that a split costs. Parts are a few per multiprocessor, and whole vectors if
 * possible. */
int64_t row_split(int64_t outer, int64_t length, int64_t inner)
{
  enum { LONG = 32768, SHORTEST = 2048 };
  ColumnTile t = {.vector = 1, .lanes = 1, .tiles = 1};
  if (inner > 1) t = column_tile(outer, length, inner, WIDEST);
  int64_t blocks = outer * t.tiles, walked = length * t.lanes * t.vector;
  int64_t most = 4 * MULTIPROCESSORS / blocks;
  if (blocks > MULTIPROCESSORS / 2 || walked <= LONG) return 1;
  if (most > walked / SHORTEST) most = walked / SHORTEST;
  for (int64_t vector = inner > 1 ? 1 : WIDEST; vector; vector /= 2)
    for (int64_t n = most; n > most / 4 && n > 1; n--)
      if (length % (n * vector) == 0) return n;
  return 1;
}
