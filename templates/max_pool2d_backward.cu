/* The gradient of each pixel: of all windows that it lies in and whose greatest element it is, the
 * first one where several are equal, as in PyTorch. A thread takes the pixels of a tile, which is
 * as large as a stride, so that it looks at a window once for all of them. */
__global__ void $name($arguments)
{
  GRID_ROW_VECTORS($vector, $index, o, c, $tiles, $c) {
    const $index image = o / ($tiles_h * $tiles_w);
    const int top = (int)(o / $tiles_w % $tiles_h) * $tile0, left = (int)(o % $tiles_w) * $tile1;
    VECTOR_LOCAL($vector, real, sum[$tile0 * $tile1]);
    for (int p = 0; p < $tile0 * $tile1; p++)
      VECTOR_EACH($vector, j) sum[p][j] = R(0.0);
    for (int a = 0 - $reach0; a <= 0; a++) {
      for (int b = 0 - $reach1; b <= 0; b++) {
        const int r = top / $stride0 + a, q = left / $stride1 + b;
        if (r < 0 || r >= $oh || q < 0 || q >= $ow) continue;
        VECTOR_LOCAL($vector, real, best);
        VECTOR_LOCAL($vector, int, found);
        VECTOR_EACH($vector, j) best[j] = -ampc_inf();
        VECTOR_EACH($vector, j) found[j] = -1;
        for (int k = 0; k < $kernel0 * $kernel1; k++) {
          const int row = r * $stride0 - $pad0 + k / $kernel1 * $dil0;
          const int column = q * $stride1 - $pad1 + k % $kernel1 * $dil1;
          if (row < 0 || row >= $h || column < 0 || column >= $w) continue;
          const $index i = ((image * $h + row) * $w + column) * $c + c;
          $operands x
          VECTOR_EACH($vector, j) {
            $values x
            const real v = $x;
            const int greater = found[j] < 0 || v > best[j] || v != v;
            best[j] = greater ? v : best[j];
            found[j] = greater ? k : found[j];
          }
        }
        const $index i = ((image * $oh + r) * $ow + q) * $c + c;
        $operands dy
        VECTOR_EACH($vector, j) {
          $values dy
          best[j] = $dy;
        }
        for (int p = 0; p < $tile0 * $tile1; p++) {
          const int in_row = top + p / $tile1 - r * $stride0;
          const int in_column = left + p % $tile1 - q * $stride1;
@dilated          if (in_row % $dil0 || in_column % $dil1) continue;
          if (in_row / $dil0 >= $kernel0 || in_column / $dil1 >= $kernel1) continue;
          const int own = in_row / $dil0 * $kernel1 + in_column / $dil1;
          VECTOR_EACH($vector, j) sum[p][j] += found[j] == own ? best[j] : R(0.0);
        }
      }
    }
    for (int p = 0; p < $tile0 * $tile1; p++) {
      const int row = top + p / $tile1 - $pad0, column = left + p % $tile1 - $pad1;
      if (row < 0 || row >= $h || column < 0 || column >= $w) continue;
      const $index i = ((image * $h + row) * $w + column) * $c + c;
      VECTOR_ROOM($vector, $type, out_at, $out + i);
      VECTOR_EACH($vector, j) {
        const real result = sum[p][j];
        out_at[j] = $result;
      }
      VECTOR_STORE($out + i, out_at);
    }
  }
}
