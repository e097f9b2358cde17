/* Each result is a weighted sum of the elements at its places, in the order of the taps. */
__global__ void $gathers$name($arguments)
{
  COLUMN_LOOP($index, o, first, width, $outer, $places) {
    COLUMN_LOCAL(1, real, sum);
    EACH_COLUMN(j, width) sum[j] = R(0.0);
    for ($index t = 0; t < $taps; t++) {
      const $index from = (o / $channels * $taps + t) * $places + first;
      EACH_COLUMN(j, width) {
        $index i = from + j;
        const long long at = place_at[i];
        const int there = at >= 0 && at < $size;
        const real weight = $weight;
        i = o * $size + (there ? ($index)at : 0);
        const real value = $x;
        sum[j] += there ? weight * value : R(0.0);
      }
    }
    EACH_COLUMN(j, width) $out[o * $places + first + j] = sum[j];
  }
}
