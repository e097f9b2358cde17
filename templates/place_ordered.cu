/* Stores each element at its index in the row, which `order` has, and 0 elsewhere. No index occurs
 * twice. */
__global__ void $name($arguments)
{
  ROW_LOOP(256, $index, row, $rows) {
    const $index to = row / $inner * $length * $inner + row % $inner;
    const $index from = row / $inner * $ordered * $inner + row % $inner;
    ROW_EACH(1, 256, $index, c, $length, {
      VECTOR_EACH(1, j) {
        const real result = R(0.0);
        $out[to + (c + j) * $inner] = $result;
      }
    });
    BLOCK_MEETS; /* all zeros are stored */
    ROW_EACH(1, 256, $index, c, $ordered, {
      VECTOR_EACH(1, j) {
        const $index i = from + (c + j) * $inner;
        const real result = $dy;
        $out[to + ($index)order_at[i] * $inner] = $result;
      }
    });
  }
}
