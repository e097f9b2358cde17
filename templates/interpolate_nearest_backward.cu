/* Computes the gradient of each pixel: the sum over its $scale0 x $scale1 copies. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $pixels, $c) {
    const $index image = o / ($h * $w) * $oh;
    const int top = (int)(o / $w % $h) * $scale0, left = (int)(o % $w) * $scale1;
    COLUMN_LOCAL(1, real, sum);
    EACH_COLUMN(j, width) sum[j] = R(0.0);
    for (int y = top; y < top + $scale0; y++) {
      for (int x = left; x < left + $scale1; x++) {
        const $index from = ((image + y) * $ow + x) * $c + first;
        EACH_COLUMN(j, width) {
          const $index i = from + j;
          sum[j] += $dy;
        }
      }
    }
    EACH_COLUMN(j, width) {
      const real result = sum[j];
      $out[o * $c + first + j] = $result;
    }
  }
}
