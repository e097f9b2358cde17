/* Computes for each $part gradients the sum of the squares of the unscaled gradients, and 1 if a
 * gradient is not finite before it is unscaled, else 0. (The square of a finite gradient may
 * overflow.) Padding is zero. @micro: gradients are complete only in the last body of a step. */
__global__ void $name($arguments)
{
@!scale  const real inv_scale = (real)state->inv_scale;
@scale  const real inv_scale = (real)(float)(1.0 / (double)$scale);
@micro  if (state->closes)
  ROW_LOOP(256, int, block, $partials) {
    const $index first = block * ($index)$part;
    const $index rest = $count - first;
    const $index n = rest < 0 ? 0 : rest < $part ? rest : $part;
    ROW_PART(real, sum_part, R(0.0));
    ROW_PART(real, bad_part, R(0.0));
    ROW_REDUCE(4, 256, $index, c, n, {
      VECTOR_LOAD(4, real, grad_at, grad + first + c);
      VECTOR_EACH(4, j) {
        const real u = grad_at[j] * inv_scale;
        ROW_PUT(sum_part) += u * u;
        ROW_PUT(bad_part) += grad_at[j] - grad_at[j]; /* 0, or NaN for inf and NaN */
      }
    });
    const real sum = row_sum(sum_part, 256), bad = row_sum(bad_part, 256);
    ROW_ONCE {
      $out[2 * block] = sum;
      $out[2 * block + 1] = bad == R(0.0) ? R(0.0) : R(1.0);
    }
  }
}
