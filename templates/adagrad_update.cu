/* torch.optim.Adagrad over the range of a group of parameters, after g += decay w. t updates were taken, this
 * one included; the sum begins with initial_accumulator_value:
 *   sum += g^2;  w -= lr / (1 + (t - 1) lr_decay) g / (sqrt(sum) + eps)
 * Gradients are cleared whether the update is taken or not. */
__global__ void $name($arguments)
{
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay, initial = $initial_accumulator_value;
  const int first = optimizer->taken == 1;
  const real step = lr / (R(1.0) + (real)(optimizer->taken - 1) * $lr_decay);
  const real factor = (real)optimizer->factor;
@clip_value  const real most = $clip_value;
@clamp1  const real low = $clamp1, high = $clamp2;
@ema  const real follow = R(1.0) - $ema;
@!micro  const int taken = !optimizer->found_inf;
@micro  const int taken = !optimizer->found_inf && !optimizer->waits;
@first_group  ONE_THREAD optimizer->lr = (float)lr;
  if (taken) {
    GRID_VECTORS(4, $index, i, $count) {
      VECTOR_LOAD(4, real, w_at, master + i);
      VECTOR_LOAD(4, real, g_at, grad + i);
      VECTOR_LOAD(4, real, v_at, moment2 + i);
@ema      VECTOR_LOAD(4, real, average, ema + i);
@copy16      VECTOR_ROOM(4, f16, copy16_to, copy16 + i);
@copybf      VECTOR_ROOM(4, bf16, copybf_to, copybf + i);
      VECTOR_EACH(4, j) {
        real w = w_at[j];
        real d = g_at[j] * factor;
@clip_value        d = ampc_max(-most, ampc_min(d, most));
@maximize        d = -d;
        const real g = d + weight_decay * w;
        const real v = (first ? initial : v_at[j]) + g * g;
        w -= step * (g / (ampc_sqrt(v) + eps));
        v_at[j] = v;
@clamp1        w = ampc_max(low, ampc_min(w, high));
        w_at[j] = w;
@ema        average[j] = optimizer->taken == 1 ? w : average[j] + follow * (w - average[j]);
@copy16        copy16_to[j] = to_f16(w);
@copybf        copybf_to[j] = to_bf16(w);
        g_at[j] = R(0.0);
      }
      VECTOR_STORE(master + i, w_at);
      VECTOR_STORE(grad + i, g_at);
      VECTOR_STORE(moment2 + i, v_at);
@ema      VECTOR_STORE(ema + i, average);
@copy16      VECTOR_STORE(copy16 + i, copy16_to);
@copybf      VECTOR_STORE(copybf + i, copybf_to);
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
