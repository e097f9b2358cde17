/* Computes the maximum of each window for each channel, or its position in the window, or both. A
 * NaN counts as the maximum. The position is of the first of equal elements, or of the last NaN. */
__global__ void $name($arguments)
{
  GRID_ROW_VECTORS($vector, $index, o, c, $windows, $c) {
    const $index image = o / ($oh * $ow);
    const int top = (int)(o / $ow % $oh) * $stride0 - $pad0;
    const int left = (int)(o % $ow) * $stride1 - $pad1;
    VECTOR_LOCAL($vector, real, best);
    VECTOR_EACH($vector, j) best[j] = -ampc_inf();
    VECTOR_LOCAL($vector, real, value);
@argmax    VECTOR_LOCAL($vector, int, found);
@argmax    VECTOR_EACH($vector, j) found[j] = -1;
    EACH_TAP(k, $kernel0 * $kernel1) {
      const int row = top + k / $kernel1 * $dil0, column = left + k % $kernel1 * $dil1;
      if (row < 0 || row >= $h || column < 0 || column >= $w) continue;
      const $index i = ((image * $h + row) * $w + column) * $c + c;
      $operands_x
      VECTOR_EACH($vector, j) {
        $values
        value[j] = $x;
      }
      VECTOR_EACH($vector, j) { /* two loops, so that the CPU vectorises each */
        const real v = value[j];
@argmax        found[j] = found[j] < 0 || v > best[j] || v != v ? k : found[j];
        best[j] = ampc_max(v, best[j]);
      }
    }
    const $index at = o * $c + c;
@value    VECTOR_ROOM($vector, $value_type, value_at, $value_out + at);
@value    VECTOR_EACH($vector, j) {
@value      const real result = best[j];
@value      value_at[j] = $value_result;
@value    }
@value    VECTOR_STORE($value_out + at, value_at);
@argmax    VECTOR_ROOM($vector, $argmax_type, argmax_at, $argmax_out + at);
@argmax    VECTOR_EACH($vector, j) argmax_at[j] = ($argmax_type)found[j];
@argmax    VECTOR_STORE($argmax_out + at, argmax_at);
  }
}
