/* Of each row from its end on y_c = b_c + a_n y_n, n the one behind c: of each element b and of all
 * behind it, times what lies between in a. $forth: from its beginning on y_c = b_c + a_c y_n, n the
 * one before c. Each is a line of what comes first; a thread has a stretch of neighbours, whose
 * lines are one line, and begins with what those before it make of 0. In double, rounded once. */
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
