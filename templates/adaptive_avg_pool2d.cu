/* Computes the means of $oh x $ow windows, which cover the image as evenly as whole pixels allow.
 * Neighbouring windows may share pixels. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $windows, $c) {
    const $index image = o / ($oh * $ow) * $h;
    const int wy = (int)(o / $ow % $oh), wx = (int)(o % $ow);
    const int top = wy * $h / $oh, bottom = ((wy + 1) * $h + $oh - 1) / $oh;
    const int left = wx * $w / $ow, right = ((wx + 1) * $w + $ow - 1) / $ow;
    COLUMN_LOCAL(1, real, sum);
    EACH_COLUMN(j, width) sum[j] = R(0.0);
    for (int y = top; y < bottom; y++) {
      for (int x = left; x < right; x++) {
        const $index from = ((image + y) * $w + x) * $c + first;
        EACH_COLUMN(j, width) {
          const $index i = from + j;
          sum[j] += $x;
        }
      }
    }
    const real divisor = (real)((bottom - top) * (right - left));
    EACH_COLUMN(j, width) {
      const real result = sum[j] / divisor;
      $out[o * $c + first + j] = $result;
    }
  }
}
