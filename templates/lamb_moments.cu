/* Note [lamb]: the first kernel of LAMB. It updates the moments of a group as Adam does. The slots
 * of the gradients receive the change that is subtracted from the weights, up to a factor. For each
 * part of a parameter, the kernel stores the sum of the squares of its weights and the sum of the
 * squares of the change. Padding after a parameter does not count. */
__global__ void $name($arguments)
{
  $lines parameters
  const real weight_decay = $weight_decay;
  $constants
  $lines factor
  $lines taken
  if (taken)
  ROW_LOOP(256, $index, part, $parts) {
    $lines part
    ROW_PART(real, weight_part, R(0.0));
    ROW_PART(real, change_part, R(0.0));
    ROW_REDUCE(4, 256, $index, c, (n + 3) / 4 * 4, {
      const $index i = begin + c;
      $lines draws
      $lines weights
      VECTOR_LOAD(4, real, g_at, grad + i);
      $lines moments
      VECTOR_EACH(4, j) {
        $lines gradient
        const real w = w_at[j];
        $formula
        g_at[j] = change;
        ROW_PUT(weight_part) += c + j < n ? w * w : R(0.0);
        ROW_PUT(change_part) += c + j < n ? change * change : R(0.0);
      }
      VECTOR_STORE(grad + i, g_at);
      $lines stores
    });
    const real weight = row_sum(weight_part, 256), change = row_sum(change_part, 256);
    ROW_ONCE {
      $out[2 * part] = weight;
      $out[2 * part + 1] = change;
    }
  }
}
