/* Sums of squares of the unscaled gradients, $part elements to a sum; NaN where a gradient is not
 * finite before it is unscaled (an overflow of the squares gives inf). Padding is zero. */
__global__ void $name($arguments)
{
  const real inv_scale = (real)state->inv_scale;
  ROW_LOOP(int, block, $partials) {
    const $index first = block * ($index)$part;
    const $index rest = $count - first;
    const $index n = rest < 0 ? 0 : rest < $part ? rest : $part;
    ROW_PART(real, sum_part, R(0.0));
    ROW_REDUCE($index, c, n, {
      const real g = grad[first + c];
      const real u = g * inv_scale;
      ROW_PUT(sum_part) += u * u + (g - g); /* g - g is 0, or NaN for inf and NaN */
    });
    const real sum = row_sum(sum_part);
    ROW_ONCE $out[block] = sum;
  }
}
