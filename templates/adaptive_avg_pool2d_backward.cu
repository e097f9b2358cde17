/* Computes the gradient of each pixel: a sum over all windows that contain the pixel. Each window
 * adds its gradient divided by its number of pixels. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $pixels, $c) {
    const $index image = o / ($h * $w) * $oh;
    const int row = (int)(o / $w % $h), column = (int)(o % $w);
    COLUMN_LOCAL(1, real, sum);
    EACH_COLUMN(j, width) sum[j] = R(0.0);
    for (int wy = row * $oh / $h; wy < $oh && wy * $h / $oh <= row; wy++) {
      const int high = ((wy + 1) * $h + $oh - 1) / $oh - wy * $h / $oh;
      for (int wx = column * $ow / $w; wx < $ow && wx * $w / $ow <= column; wx++) {
        const int wide = ((wx + 1) * $w + $ow - 1) / $ow - wx * $w / $ow;
        const real divisor = (real)(high * wide);
        const $index from = ((image + wy) * $ow + wx) * $c + first;
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
