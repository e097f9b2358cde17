/* One block combines the sums of a group's parts for each parameter. The result is the norm of the
 * weights divided by the norm of their change u (lamb_update.cu), or 1 if either norm is 0. */
__global__ void $name($arguments)
{
  $lines parameters
  $lines taken
  if (taken)
  ROW_LOOP(32, int, of, $params) {
    const $index first = parameters[3 * of], n = parameters[3 * of + 3] - first;
    ROW_PART(real, weight_part, R(0.0));
    ROW_PART(real, change_part, R(0.0));
    ROW_REDUCE(1, 32, $index, c, n, {
      VECTOR_EACH(1, j) {
        ROW_PUT(weight_part) += sums_at[2 * (first + c + j)];
        ROW_PUT(change_part) += sums_at[2 * (first + c + j) + 1];
      }
    });
    const real weight = ampc_sqrt(row_sum(weight_part, 32));
    const real change = ampc_sqrt(row_sum(change_part, 32));
    ROW_ONCE $out[of] = weight == R(0.0) || change == R(0.0) ? R(1.0) : weight / change;
  }
}
