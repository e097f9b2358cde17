/* Note [lamb]: You et al., 2020, algorithm 2, over a group of parameters. t updates were taken, this one included:
 *   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
 *   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + decay w
 *   w -= lr |w| / |u| u
 * with the norms of the whole parameter; |w| / |u| is 1 where either is 0. Without bias_correction the divisors
 * 1 - beta^t are not there; without always_adapt the ratio is 1 where decay is 0. Three steps: lamb_moments.cu has
 * u, trust_ratio.cu the ratio, and this is the last one. It clears gradients whether the update is taken or not. */
__global__ void $name($arguments)
{
  TABLE($index, parameters) = {
$parameters
  };
  const real lr = $lr;
@!always_adapt  const int adapts = $weight_decay != R(0.0);
@clamp1  const real low = $clamp1, high = $clamp2;
@ema  const real follow = R(1.0) - $ema;
@!micro  const int taken = !optimizer->found_inf;
@micro  const int taken = !optimizer->found_inf && !optimizer->waits;
@first_group  ONE_THREAD optimizer->lr = (float)lr;
  if (taken) {
    ROW_LOOP(256, $index, part, $parts) {
      TABLE_ROW(parameters, $params, at, part);
      const $index begin = parameters[at + 1] + (part - parameters[at]) * $part;
      const $index rest = parameters[at + 2] - begin;
      const $index n = rest < $part ? rest : $part;
@always_adapt      const real step = lr * ratio_at[at / 3];
@!always_adapt      const real step = adapts ? lr * ratio_at[at / 3] : lr;
      ROW_EACH(4, 256, $index, c, (n + 3) / 4 * 4, {
        VECTOR_LOAD(4, real, w_at, master + begin + c);
        VECTOR_LOAD(4, real, g_at, grad + begin + c);
@ema        VECTOR_LOAD(4, real, average, ema + begin + c);
@copy16        VECTOR_ROOM(4, f16, copy16_to, copy16 + begin + c);
@copybf        VECTOR_ROOM(4, bf16, copybf_to, copybf + begin + c);
        VECTOR_EACH(4, j) {
          real w = w_at[j] - step * g_at[j];
@clamp1          w = ampc_max(low, ampc_min(w, high));
          w_at[j] = w;
@ema          average[j] = optimizer->taken == 1 ? w : average[j] + follow * (w - average[j]);
@copy16          copy16_to[j] = to_f16(w);
@copybf          copybf_to[j] = to_bf16(w);
          g_at[j] = R(0.0);
        }
        VECTOR_STORE(master + begin + c, w_at);
        VECTOR_STORE(grad + begin + c, g_at);
@ema        VECTOR_STORE(ema + begin + c, average);
@copy16        VECTOR_STORE(copy16 + begin + c, copy16_to);
@copybf        VECTOR_STORE(copybf + begin + c, copybf_to);
      });
    }
@!micro  } else {
@micro  } else if (!optimizer->waits) {
    GRID_VECTORS(4, $index, i, $count) {
      VECTOR_ROOM(4, real, g_at, grad + i);
      VECTOR_EACH(4, j) g_at[j] = R(0.0);
      VECTOR_STORE(grad + i, g_at);
    }
  }
}
