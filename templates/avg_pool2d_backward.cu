/* Computes the gradient of each pixel: a sum over all windows that contain the pixel. Each window
 * adds its gradient divided by the divisor of its mean. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $pixels, $c) {
    const $index image = o / ($h * $w);
    const int row = (int)(o / $w % $h) + $pad0, column = (int)(o % $w) + $pad1;
    COLUMN_LOCAL(1, real, sum);
    EACH_COLUMN(j, width) sum[j] = R(0.0);
    for (int wy = row < $kernel0 ? 0 : (row - $kernel0) / $stride0 + 1; wy < $oh; wy++) {
      const int top = wy * $stride0;
      if (top > row) break;
      const int high = (top + $kernel0 < $h + $pad0 ? top + $kernel0 : $h + $pad0) -
          (top > $pad0 ? top : $pad0);
      for (int wx = column < $kernel1 ? 0 : (column - $kernel1) / $stride1 + 1; wx < $ow; wx++) {
        const int left = wx * $stride1;
        if (left > column) break;
        const int wide = (left + $kernel1 < $w + $pad1 ? left + $kernel1 : $w + $pad1) -
            (left > $pad1 ? left : $pad1);
@ceil        const int tall = top + $kernel0 < $h + 2 * $pad0 ? $kernel0 : $h + 2 * $pad0 - top;
@ceil        const int broad = left + $kernel1 < $w + 2 * $pad1 ? $kernel1 : $w + 2 * $pad1 - left;
        const real divisor = (real)($divisor ? $divisor : $count_include_pad
@ceil            ? tall * broad : high * wide);
@!ceil            ? $kernel0 * $kernel1 : high * wide);
        const $index from = ((image * $oh + wy) * $ow + wx) * $c + first;
        EACH_COLUMN(j, width) {
          const $index i = from + j;
          sum[j] += $dy / divisor;
        }
      }
    }
    EACH_COLUMN(j, width) {
      const real result = sum[j];
      $out[o * $c + first + j] = $result;
    }
  }
}
