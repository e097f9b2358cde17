/* Computes a linear recurrence along each row. From the end of the row: y_c = b_c + a_n y_n with n
 * = c + 1. $forth: from the beginning of the row, y_c = b_c + a_c y_n with n = c - 1. Each y is a
 * linear function of the one before it. A thread has a contiguous range of the row; the functions
 * of these elements compose to one linear function. The thread begins with the result of applying
 * the functions of the threads before it to 0. All is computed in double and rounded once. */
__global__ void $name($arguments)
{
  ROW_LOOP($threads, $index, row, $rows) {
    const $index at = row / $inner * $length * $inner + row % $inner;
    ROW_SHARE($threads, $index, first, end, $length);
    double factor = 1, sum_part = 0;
    for ($index c = first; c < end; c++) {
      const $index i = at + ($forth ? c : $length - 1 - c) * $inner;
      sum_part = $forth ? $b + (c ? sum_part * $a : 0) : (sum_part + $b) * $a;
      if (c || !$forth) factor *= $a;
    }
    sum_part = row_before_line(factor, sum_part, $threads);
    for ($index c = first; c < end; c++) {
      const $index i = at + ($forth ? c : $length - 1 - c) * $inner;
      sum_part = $forth ? $b + (c ? sum_part * $a : 0) : sum_part + $b;
      const real result = (real)sum_part;
      $out[i] = $result;
      if (!$forth) sum_part *= $a;
    }
  }
}
