/* Adds each element of dy, weighted, to the elements at its places: in the order of dy, then of the
 * taps. A part has $rows adjacent results. */
__global__ void $name($arguments)
{
  GRID_LOOP($index, o, $outer * $parts) {
    const $index line = o / $parts, begin = o % $parts * $rows;
    const $index end = begin + $rows < $size ? begin + $rows : $size;
    for ($index row = begin; row < end; row++) $out[line * $size + row] = R(0.0);
    for ($index p = 0; p < $places; p++) {
      for ($index t = 0; t < $taps; t++) {
        $index i = (line / $channels * $taps + t) * $places + p;
        const long long at = place_at[i];
        if (at < begin || at >= end) continue;
        const real weight = $weight;
        i = line * $places + p;
        $out[line * $size + ($index)at] += weight * $dy;
      }
    }
  }
}
