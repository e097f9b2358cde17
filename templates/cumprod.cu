/* Computes for each element of a row the product of all elements up to it. $exclusive: without the
 * element itself. $reverse: from the end of the row. A thread has a contiguous range of the row and
 * begins with the product of all elements before that range. Floats are multiplied in double and
 * rounded once. */
__global__ void $name($arguments)
{
  ROW_LOOP($threads, $index, row, $rows) {
    const $index at = row / $inner * $length * $inner + row % $inner;
    ROW_SHARE($threads, $index, first, end, $length);
@!integers    double product_part = 1;
@integers    long long product_part = 1;
    for ($index c = first; c < end; c++) {
      const $index i = at + ($reverse ? $length - 1 - c : c) * $inner;
      product_part *= $x;
    }
@!integers    product_part = row_before_product(product_part, $threads);
@integers    product_part = row_before_product_int(product_part, $threads);
    for ($index c = first; c < end; c++) {
      const $index i = at + ($reverse ? $length - 1 - c : c) * $inner;
@!integers      const double before = product_part;
@integers      const long long before = product_part;
      product_part *= $x;
@!integers      const real result = (real)($exclusive ? before : product_part);
@integers      const long long result = $exclusive ? before : product_part;
      $out[i] = $result;
    }
  }
}
