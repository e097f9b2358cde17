/* The gradient of each weight: the sum over the channels of dy times the element at its place. */
__global__ void $gathers$name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $outer / $channels * $taps, $places) {
    COLUMN_LOCAL(1, real, sum);
    EACH_COLUMN(j, width) sum[j] = R(0.0);
    const $index line = o / $taps * $channels;
    for ($index c = 0; c < $channels; c++) {
      EACH_COLUMN(j, width) {
        const long long at = place_at[o * $places + first + j];
        const int there = at >= 0 && at < $size;
        $index i = (line + c) * $places + first + j;
        const real given = $dy;
        i = (line + c) * $size + (there ? ($index)at : 0);
        const real value = $x;
        sum[j] += there ? given * value : R(0.0);
      }
    }
    EACH_COLUMN(j, width) $out[o * $places + first + j] = sum[j];
  }
}
