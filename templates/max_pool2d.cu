/* The greatest element of each window, a NaN before all others; channel by channel. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $windows, $c) {
    const $index image = o / ($oh * $ow) * $h;
    const int top = (int)(o / $ow % $oh) * $stride0 - $pad0;
    const int left = (int)(o % $ow) * $stride1 - $pad1;
    real best[COLUMNS];
    EACH_COLUMN(j, width) best[j] = -ampc_inf();
    for (int y = top; y < top + $kernel0 * $dil0; y += $dil0) {
      for (int x = left; x < left + $kernel1 * $dil1; x += $dil1) {
        if (y < 0 || y >= $h || x < 0 || x >= $w) continue;
        const $index from = ((image + y) * $w + x) * $c + first;
        EACH_COLUMN(j, width) {
          const $index i = from + j;
          best[j] = ampc_max($x, best[j]);
        }
      }
    }
    EACH_COLUMN(j, width) {
      const real result = best[j];
      $out[o * $c + first + j] = $result;
    }
  }
}
