/* Computes the gradient of each pixel: the sum over all windows whose maximum the pixel is. A
 * thread takes the pixels of a tile, which is as large as a stride. So windows that do not overlap
 * are read only once. */
__global__ void $name($arguments)
{
  GRID_ROW_VECTORS($vector, $index, o, c, $tiles, $c) {
    const $index image = o / ($tiles_h * $tiles_w);
    const int top = (int)(o / $tiles_w % $tiles_h) * $tile0, left = (int)(o % $tiles_w) * $tile1;
    VECTOR_LOCAL($vector, real, s[$tile0 * $tile1]);
    for (int p = 0; p < $tile0 * $tile1; p++)
      VECTOR_EACH($vector, j) s[p][j] = R(0.0);
    for (int a = 0 - $reach0; a <= 0; a++) {
      for (int b = 0 - $reach1; b <= 0; b++) {
        const int r = top / $stride0 + a, q = left / $stride1 + b;
        if (r < 0 || r >= $oh || q < 0 || q >= $ow) continue;
        const $index i = ((image * $oh + r) * $ow + q) * $c + c;
        $operands_argmax
        VECTOR_LOCAL($vector, int, found);
        VECTOR_EACH($vector, j) {
          $values
          found[j] = $argmax;
        }
        $operands_dy
        VECTOR_LOCAL($vector, real, given);
        VECTOR_EACH($vector, j) {
          $values
          given[j] = $dy;
        }
        for (int p = 0; p < $tile0 * $tile1; p++) {
          const int in_row = top + p / $tile1 - r * $stride0;
          const int in_column = left + p % $tile1 - q * $stride1;
@dilated          if (in_row % $dil0 || in_column % $dil1) continue;
          if (in_row / $dil0 >= $kernel0 || in_column / $dil1 >= $kernel1) continue;
          const int own = in_row / $dil0 * $kernel1 + in_column / $dil1;
          VECTOR_EACH($vector, j) s[p][j] += found[j] == own ? given[j] : R(0.0);
        }
      }
    }
    for (int p = 0; p < $tile0 * $tile1; p++) {
      const int row = top + p / $tile1 - $pad0, column = left + p % $tile1 - $pad1;
      if (row < 0 || row >= $h || column < 0 || column >= $w) continue;
      const $index i = ((image * $h + row) * $w + column) * $c + c;
      VECTOR_ROOM($vector, $value_type, value_at, $value_out + i);
      VECTOR_EACH($vector, j) {
        const real result = s[p][j];
        value_at[j] = $value_result;
      }
      VECTOR_STORE($value_out + i, value_at);
    }
  }
}
