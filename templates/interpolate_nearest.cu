/* Repeats each pixel $scale0 x $scale1 times. */
__global__ void $name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $windows, $c) {
    const $index image = o / ($oh * $ow) * $h;
    const int y = (int)(o / $ow % $oh) / $scale0, x = (int)(o % $ow) / $scale1;
    const $index from = ((image + y) * $w + x) * $c + first;
    EACH_COLUMN(j, width) {
      const $index i = from + j;
      const real result = $x;
      $out[o * $c + first + j] = $result;
    }
  }
}
