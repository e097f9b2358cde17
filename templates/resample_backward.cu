/* Computes the gradient of each pixel: a sum over all results that read the pixel, in their order.
 * Each result adds its gradient times the weight of the pixel. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $pixels, $c) {
    const $index image = o / ($h * $w) * $oh;
    const int row = (int)(o / $w % $h), column = (int)(o % $w);
    COLUMN_LOCAL(1, real, sum);
    EACH_COLUMN(j, width) sum[j] = R(0.0);
    for (int wy = ampc_first_place(row, $scale0, $taps0); wy < $oh; wy++) {
      const float y = ampc_place(wy, $scale0, $taps0, $centred);
      if (ampc_tap(y, $taps0, 0, $h) > row) break;
      const real high = ampc_pixel_weight(y, $taps0, row, $h);
      if (high == R(0.0)) continue;
      for (int wx = ampc_first_place(column, $scale1, $taps1); wx < $ow; wx++) {
        const float x = ampc_place(wx, $scale1, $taps1, $centred);
        if (ampc_tap(x, $taps1, 0, $w) > column) break;
        const real share = high * ampc_pixel_weight(x, $taps1, column, $w);
        if (share == R(0.0)) continue;
        const $index from = ((image + wy) * $ow + wx) * $c + first;
        EACH_COLUMN(j, width) {
          const $index i = from + j;
          sum[j] += share * $dy;
        }
      }
    }
    EACH_COLUMN(j, width) {
      const real result = sum[j];
      $out[o * $c + first + j] = $result;
    }
  }
}
