/* The gradient of each pixel: of all windows that it lies in and whose greatest element it is, the
 * first one where several are equal, as in PyTorch. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $pixels, $c) {
    const $index image = o / ($h * $w);
    const int row = (int)(o / $w % $h) + $pad0, column = (int)(o % $w) + $pad1;
    const int above = row - $dil0 * ($kernel0 - 1), before = column - $dil1 * ($kernel1 - 1);
    real sum[COLUMNS];
    EACH_COLUMN(j, width) sum[j] = R(0.0);
    for (int wy = above > 0 ? (above + $stride0 - 1) / $stride0 : 0; wy < $oh; wy++) {
      const int in_y = row - wy * $stride0;
      if (in_y < 0) break;
      for (int wx = before > 0 ? (before + $stride1 - 1) / $stride1 : 0; wx < $ow; wx++) {
        const int in_x = column - wx * $stride1;
        if (in_x < 0) break;
        if (in_y % $dil0 || in_x % $dil1) continue;
        real best[COLUMNS];
        int found[COLUMNS];
        EACH_COLUMN(j, width) best[j] = -ampc_inf();
        EACH_COLUMN(j, width) found[j] = -1;
        for (int a = 0; a < $kernel0; a++) {
          for (int b = 0; b < $kernel1; b++) {
            const int y = wy * $stride0 - $pad0 + a * $dil0;
            const int x = wx * $stride1 - $pad1 + b * $dil1;
            if (y < 0 || y >= $h || x < 0 || x >= $w) continue;
            const $index from = ((image * $h + y) * $w + x) * $c + first;
            EACH_COLUMN(j, width) {
              const $index i = from + j;
              const real v = $x;
              const int greater = found[j] < 0 || v > best[j] || v != v;
              best[j] = greater ? v : best[j];
              found[j] = greater ? a * $kernel1 + b : found[j];
            }
          }
        }
        const int own = in_y / $dil0 * $kernel1 + in_x / $dil1;
        const $index from = ((image * $oh + wy) * $ow + wx) * $c + first;
        EACH_COLUMN(j, width) {
          const $index i = from + j;
          const real dy = $dy;
          sum[j] += found[j] == own ? dy : R(0.0);
        }
      }
    }
    EACH_COLUMN(j, width) {
      const real result = sum[j];
      $out[o * $c + first + j] = $result;
    }
  }
}
