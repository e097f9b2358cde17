/* Returns the indices of each row's elements in ascending order; $descending: in descending
 * order. NaN is larger than all numbers; equal elements keep their order. This is a bitonic
 * sort: it sorts blocks of 2 elements, then of 4, and so on. The first step for each block size
 * compares a block's first element with its last, the second with the last but one, and so on.
 * So each exchange puts the smaller element in front, and no padding to a power of 2 is needed:
 * pairs that reach past the end of the row are skipped. Equal elements are ordered by their
 * indices, so the sort is stable. */
__global__ void $name($arguments)
{
  ROW_LOOP(256, $index, row, $rows) {
    const $index at = row / $inner * $length * $inner + row % $inner;
    ROW_EACH(1, 256, $index, c, $length, {
      VECTOR_EACH(1, j) $out[at + (c + j) * $inner] = c + j;
    });
    for ($index size = 2; size <= $padded; size *= 2) {
      for ($index step = size / 2; step > 0; step /= 2) {
        BLOCK_MEETS; /* all threads have stored their exchanged elements */
        ROW_EACH(1, 256, $index, c, $padded / 2, {
          VECTOR_EACH(1, j) {
            const $index rest = (c + j) & (step - 1), low = 2 * (c + j) - rest;
            const $index high = 2 * step == size ? low - 2 * rest + size - 1 : low + step;
            if (high < $length) {
              const long long front = $out[at + low * $inner], back = $out[at + high * $inner];
              $element front_value, back_value;
              {
                const $index i = at + ($index)front * $inner;
                front_value = $x;
              }
              {
                const $index i = at + ($index)back * $inner;
                back_value = $x;
              }
@!integers              int less = back_value < front_value ||
@!integers                  (front_value != front_value && back_value == back_value);
@!integers              int more = front_value < back_value ||
@!integers                  (back_value != back_value && front_value == front_value);
@integers              int less = back_value < front_value, more = front_value < back_value;
              const int exchange = ($descending ? more : less) || (!less && !more && back < front);
              if (exchange) {
                $out[at + low * $inner] = back;
                $out[at + high * $inner] = front;
              }
            }
          }
        });
      }
    }
    BLOCK_MEETS; /* before the next row */
  }
}
