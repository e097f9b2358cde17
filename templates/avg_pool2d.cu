/* Computes the mean of each window, for each channel. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $windows, $c) {
    const $index image = o / ($oh * $ow) * $h;
    const int top = (int)(o / $ow % $oh) * $stride0 - $pad0;
    const int left = (int)(o % $ow) * $stride1 - $pad1;
    int pixels = 0;
    COLUMN_LOCAL(1, real, sum);
    EACH_COLUMN(j, width) sum[j] = R(0.0);
    for (int y = top; y < top + $kernel0; y++) {
      for (int x = left; x < left + $kernel1; x++) {
        if (y < 0 || y >= $h || x < 0 || x >= $w) continue;
        const $index from = ((image + y) * $w + x) * $c + first;
        pixels++;
        EACH_COLUMN(j, width) {
          const $index i = from + j;
          sum[j] += $x;
        }
      }
    }
@ceil    const int high = top + $kernel0 < $h + $pad0 ? $kernel0 : $h + $pad0 - top;
@ceil    const int wide = left + $kernel1 < $w + $pad1 ? $kernel1 : $w + $pad1 - left;
    const real divisor = (real)($divisor ? $divisor : $count_include_pad
@ceil        ? high * wide : pixels);
@!ceil        ? $kernel0 * $kernel1 : pixels);
    EACH_COLUMN(j, width) {
      const real result = sum[j] / divisor;
      $out[o * $c + first + j] = $result;
    }
  }
}
