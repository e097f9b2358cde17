/* Note [lamb]: You et al., 2020, algorithm 2, over a group of parameters. t is the number of
 * updates, including this one:
 *   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
 *   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + decay w
 *   w -= lr |w| / |u| u
 * |w| and |u| are norms of the whole parameter; |w| / |u| is 1 if either norm is 0. Without
 * bias_correction there are no divisors 1 - beta^t. Without always_adapt the ratio is 1 if decay is
 * 0. There are three kernels: lamb_moments.cu computes u, trust_ratio.cu the ratio, and this kernel
 * w. */
__global__ void $name($arguments)
{
  $lines parameters
  const real lr = $lr;
@!always_adapt  const int adapts = $weight_decay != R(0.0);
  $lines limits
  if (taken) {
    ROW_LOOP(256, $index, part, $parts) {
      $lines part
@always_adapt      const real step = lr * ratio_at[at / 3];
@!always_adapt      const real step = adapts ? lr * ratio_at[at / 3] : lr;
@sums      $lines summed
@!sums      ROW_EACH(4, 256, $index, c, (n + 3) / 4 * 4, {
@!sums        const $index i = begin + c;
@!sums        $lines vectors
@!sums      });
    }
  $lines clear
}
// --- element
  real w = w_at[j] - step * g_at[j];
