/* Each row sums the elements that the index sends to it, in the order of the index. So the order
 * does not depend on the number of threads. On CUDA a part has every $parts-th row: frequent rows
 * are often neighbours, and so they belong to different parts. On the CPU a part has adjacent rows.
 * A block computes a tile of columns of one part. It takes 2048 places of the index at a time,
 * lists those that name one of its rows, and then adds what the list names. */
__global__ void $name($arguments)
{
  BLOCK_ROOM(unsigned char, own, 2048); /* 1: the place names a row of the part */
  BLOCK_ROOM($index, list, 2048);
  BLOCK_ROOM($index, rows, 2048);
  BLOCK_ROOM(int, length, 1);
  ROW_LOOP(256, $index, share, $parts * $tiles) {
    const $index part = share % $parts;
@tiled    const $index first = share / $parts * $tile;
@tiled    const $index width = $columns - first < $tile ? $columns - first : $tile;
@!tiled    const $index first = 0, width = $columns;
@adjacent    const $index begin = part * $rows;
@adjacent    const $index end = begin + $rows < $size ? begin + $rows : $size;
@!adjacent@!added    const $index begin = part;
@!adjacent    const $index end = $size;
@!added    for ($index row = begin; row < end; row += $step) {
@!added      ROW_EACH(1, 256, $index, c, width, {
@!added        VECTOR_EACH(1, j) $out[row * $columns + first + c + j] = R(0.0);
@!added      });
@!added    }
    for ($index from = 0; from < $places; from += 2048) {
      const int places = $places - from < 2048 ? (int)($places - from) : 2048;
      ROW_EACH(1, 256, int, c, places, {
        VECTOR_EACH(1, j) {
          const long long row = index_at[from + c + j];
@adjacent          own[c + j] = row >= begin && row < end && row != $padding;
@!adjacent          own[c + j] = row >= 0 && row < end && row != $padding && row % $parts == part;
        }
      });
      BLOCK_MEETS; /* all of `own` is stored */
      ROW_SHARE(256, int, first_place, last_place, places);
      int found = 0;
      for (int k = first_place; k < last_place; k++) found += own[k];
      int at = row_before_sum_i32(found, 256);
      for (int k = first_place; k < last_place; k++) {
        if (!own[k]) continue;
        list[at] = from + k;
        rows[at++] = ($index)index_at[from + k];
      }
      if (last_place == places) length[0] = at; /* only in the last thread */
      BLOCK_MEETS; /* the lists are stored */
      ROW_SUMS($tile, 256, $index, c, width, n, length[0], rows, $out + rows[n] * $columns + first,
               i, list[n] * $columns + first, $dy)
    }
  }
}
