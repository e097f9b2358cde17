/* Each result combines x with the elements that name it in the index, in the order of the index. A
 * part has $rows adjacent results. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $outer * $parts, $columns) {
    const $index begin = o % $parts * $rows;
    const $index end = begin + $rows < $size ? begin + $rows : $size;
    for ($index row = begin; row < end; row++) {
      EACH_COLUMN(j, width) {
        const $index i = (o / $parts * $size + row) * $columns + first + j;
@x        $out[i] = $x;
@!x        $out[i] = R(0.0);
      }
    }
    for ($index k = 0; k < $places; k++) {
      EACH_COLUMN(j, width) {
        const $index i = (o / $parts * $places + k) * $columns + first + j;
        if (index_at[i] < begin || index_at[i] >= end) continue;
        const $index to = (o / $parts * $size + ($index)index_at[i]) * $columns + first + j;
@sum        $out[to] += $src;
@product        $out[to] *= $src;
@largest        $out[to] = ampc_max($out[to], $src);
@smallest        $out[to] = ampc_min($out[to], $src);
      }
    }
  }
}
