/* How sums along columns are cut up: see columns.h. */
#include "columns.h"

/* Note [column tiles]
 * A GPU is busy where every multiprocessor has a block and every thread some rows that it can load
 * at once. Wide tiles read long stretches of memory, narrow ones have more blocks, and more threads
 * for the rows of each: so a tile is as wide as it can be and is halved, down to 32 bytes, while
 * blocks are too few. Parts are as many as fill the greatest GPUs twice, but of no fewer rows than
 * WALK for each thread, behind which the sum over the threads is little. */
enum {
  WARP = 32,
  MULTIPROCESSORS = 132,
  WALK = 4, /* rows of a thread: parts have multiples of it, which are loaded at once */
  WIDEST = 8
};

static int64_t divided_up(int64_t n, int64_t by)
{
  return (n + by - 1) / by;
}

/* The least power of 2 that is n or more, up to a warp. */
static uint32_t lanes_of(int64_t n)
{
  uint32_t lanes = 1;
  while (lanes < n && lanes < WARP) lanes *= 2;
  return lanes;
}

ColumnTile column_tile(int64_t outer, int64_t length, int64_t inner, uint32_t widest, bool alone)
{
  const int64_t busy = alone ? 1 : MULTIPROCESSORS;
  ColumnTile t = {.vector = widest};
  while (t.vector > 1 && inner % t.vector) t.vector = t.vector > 4 ? 4 : 1;
  const uint32_t least = t.vector > 1 ? 2 : WIDEST; /* lanes that read 32 bytes together */
  t.lanes = lanes_of(divided_up(inner, t.vector));
  while (t.lanes > least && COLUMN_THREADS / t.lanes < length &&
         outer * divided_up(inner, t.lanes * t.vector) < busy)
    t.lanes /= 2;
  t.tiles = divided_up(inner, (int64_t)t.lanes * t.vector);
  return t;
}

int64_t column_part_rows(int64_t rows, int64_t channels)
{
  int64_t lanes = lanes_of(divided_up(channels, WIDEST)), at_once = COLUMN_THREADS / lanes;
  int64_t tiles = divided_up(channels, lanes * WIDEST);
  int64_t walk = divided_up(rows, at_once) * tiles / (2 * MULTIPROCESSORS);
  return at_once * (walk < WALK ? WALK : divided_up(walk, WALK) * WALK);
}

int64_t column_parts(int64_t rows, int64_t channels)
{
  int64_t parts = divided_up(rows, column_part_rows(rows, channels));
  return parts < 1 ? 1 : parts;
}
