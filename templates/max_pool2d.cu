/* The greatest element of each window, a NaN before all others; channel by channel. */
__global__ void $name($arguments)
{
  GRID_ROW_VECTORS($vector, $index, o, c, $windows, $c) {
    const $index image = o / ($oh * $ow);
    const int top = (int)(o / $ow % $oh) * $stride0 - $pad0;
    const int left = (int)(o % $ow) * $stride1 - $pad1;
    VECTOR_LOCAL($vector, real, best);
    VECTOR_EACH($vector, j) best[j] = -ampc_inf();
    for (int k = 0; k < $kernel0 * $kernel1; k++) {
      const int row = top + k / $kernel1 * $dil0, column = left + k % $kernel1 * $dil1;
      if (row < 0 || row >= $h || column < 0 || column >= $w) continue;
      const $index i = ((image * $h + row) * $w + column) * $c + c;
      $operands x
      VECTOR_EACH($vector, j) {
        $values x
        best[j] = ampc_max($x, best[j]);
      }
    }
    VECTOR_ROOM($vector, $type, out_at, $out + (o * $c + c));
    VECTOR_EACH($vector, j) {
      const real result = best[j];
      out_at[j] = $result;
    }
    VECTOR_STORE($out + (o * $c + c), out_at);
  }
}
