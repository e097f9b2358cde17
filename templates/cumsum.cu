/* Computes for each element of a row the sum of all elements up to it, including itself. $reverse:
 * from the end of the row. A thread has a contiguous range of the row and begins with the sum of
 * all elements before it. Floats are added in double and rounded once. */
__global__ void $name($arguments)
{
  ROW_LOOP($threads, $index, row, $rows) {
    const $index at = row / $inner * $length * $inner + row % $inner;
    ROW_SHARE($threads, $index, first, end, $length);
@!integers    double sum_part = 0;
@integers    long long sum_part = 0;
    for ($index c = first; c < end; c++) {
      const $index i = at + ($reverse ? $length - 1 - c : c) * $inner;
      sum_part += $x;
    }
@!integers    sum_part = row_before_sum(sum_part, $threads);
@integers    sum_part = row_before_sum_int(sum_part, $threads);
    for ($index c = first; c < end; c++) {
      const $index i = at + ($reverse ? $length - 1 - c : c) * $inner;
      sum_part += $x;
@!integers      const real result = (real)sum_part;
@integers      const long long result = sum_part;
      $out[i] = $result;
    }
  }
}
