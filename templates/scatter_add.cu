/* Each result sums the elements that name it in the index, in the order of the index. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $outer * $size, $columns) {
    const int own = (int)(o % $size);
    COLUMN_LOCAL(1, real, sum);
@x    EACH_COLUMN(j, width) {
@x      const $index i = o * $columns + first + j;
@x      sum[j] = $x;
@x    }
@!x    EACH_COLUMN(j, width) sum[j] = R(0.0);
    for ($index k = 0; k < $places; k++) {
      EACH_COLUMN(j, width) {
        const $index i = (o / $size * $places + k) * $columns + first + j;
        if (index_at[i] == own) sum[j] += $src;
      }
    }
    EACH_COLUMN(j, width) {
      const real result = sum[j];
      $out[o * $columns + first + j] = $result;
    }
  }
}
