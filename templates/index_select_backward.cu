/* Each row sums the elements that the index sends to it, in the order of the index. So the order
 * does not depend on the number of threads. A thread computes some rows of one column. On the CPU
 * it computes these rows of several neighbouring columns. A thread walks the whole index. The loop
 * is unrolled only by four: the loop over a short index, unrolled completely, would keep all its
 * rows in registers. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, part, first, width, $parts, $columns) {
    const long long begin = (long long)part * $rows;
    const long long end = begin + $rows < $size ? begin + $rows : $size;
@!added    for (long long row = begin; row < end; row++) {
@!added      EACH_COLUMN(j, width) $out[($index)row * $columns + first + j] = R(0.0);
@!added    }
#pragma unroll 4
    for ($index k = 0; k < $places; k++) {
      const long long row = index_at[k];
      if (row < begin || row >= end || row == $padding) continue;
      EACH_COLUMN(j, width) {
        const $index i = k * $columns + first + j;
        $out[($index)row * $columns + first + j] += $dy;
      }
    }
  }
}
