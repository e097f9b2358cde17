/* Note [lamb]: the first kernel of LAMB. It updates the moments of a group as Adam does. The slots
 * of the gradients receive the change that is subtracted from the weights, up to a factor. For each
 * part of a parameter, the kernel stores the sum of the squares of its weights and the sum of the
 * squares of the change. Padding after a parameter does not count. */
__global__ void $name($arguments)
{
  $lines parameters
  const real eps = $eps, weight_decay = $weight_decay;
  const real beta2 = $beta2, fresh1 = R(1.0) - $beta1, fresh2 = R(1.0) - beta2;
@bias_correction  const real t = (real)optimizer->taken;
@bias_correction  const real correct1 = R(1.0) / -ampc_expm1(t * ampc_log1p(-fresh1));
@bias_correction  const real correct2 = ampc_sqrt(-ampc_expm1(t * ampc_log1p(-fresh2)));
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
        const real m = m_at[j] + fresh1 * (g - m_at[j]);
        const real v = beta2 * v_at[j] + fresh2 * g * g;
@bias_correction        const real u = correct1 * (m / (ampc_sqrt(v) / correct2 + eps)) +
@bias_correction            weight_decay * w_at[j];
@!bias_correction        const real u = m / (ampc_sqrt(v) + eps) + weight_decay * w_at[j];
        m_at[j] = m;
        v_at[j] = v;
        g_at[j] = u;
        ROW_PUT(weight_part) += c + j < n ? w_at[j] * w_at[j] : R(0.0);
        ROW_PUT(change_part) += c + j < n ? u * u : R(0.0);
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
