/* Resamples images: each result is a weighted sum of $taps0 x $taps1 pixels around its place.
 * Beyond the border, the border's pixels are repeated. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $windows, $c) {
    const $index image = o / ($oh * $ow) * $h;
    const float y = ampc_place((int)(o / $ow % $oh), $scale0, $taps0, $centred);
    const float x = ampc_place((int)(o % $ow), $scale1, $taps1, $centred);
    COLUMN_LOCAL(1, real, sum);
    EACH_COLUMN(j, width) sum[j] = R(0.0);
    for (int a = 0; a < $taps0; a++) {
      const int row = ampc_tap(y, $taps0, a, $h);
      const real high = ampc_tap_weight(y, $taps0, a);
      for (int b = 0; b < $taps1; b++) {
        const int column = ampc_tap(x, $taps1, b, $w);
        const real share = high * ampc_tap_weight(x, $taps1, b);
        const $index from = ((image + row) * $w + column) * $c + first;
        EACH_COLUMN(j, width) {
          const $index i = from + j;
          sum[j] += share * $x;
        }
      }
    }
    EACH_COLUMN(j, width) {
      const real result = sum[j];
      $out[o * $c + first + j] = $result;
    }
  }
}
