/* torch.optim.Adam and AdamW over the range of a group of parameters. t updates were taken, this one included:
 *   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
 *   w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * Adam adds decay w to g; AdamW shrinks w by lr decay instead. amsgrad takes the greatest v so far for v. 1 - beta^t
 * is computed from 1 - beta, which is exact. Gradients are cleared whether the update is taken or not. */
__global__ void $name($arguments)
{
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay;
  const real beta2 = $beta2, fresh1 = R(1.0) - $beta1, fresh2 = R(1.0) - beta2;
  const real t = (real)optimizer->taken;
  const real step = lr / -ampc_expm1(t * ampc_log1p(-fresh1));
  const real correct2 = ampc_sqrt(-ampc_expm1(t * ampc_log1p(-fresh2)));
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
      VECTOR_LOAD(4, real, m_at, moment1 + i);
      VECTOR_LOAD(4, real, v_at, moment2 + i);
@amsgrad      VECTOR_LOAD(4, real, u_at, moment3 + i);
@ema      VECTOR_LOAD(4, real, average, ema + i);
@copy16      VECTOR_ROOM(4, f16, copy16_to, copy16 + i);
@copybf      VECTOR_ROOM(4, bf16, copybf_to, copybf + i);
      VECTOR_EACH(4, j) {
        real w = w_at[j];
        real d = g_at[j] * factor;
@clip_value        d = ampc_max(-most, ampc_min(d, most));
@maximize        d = -d;
@!decoupled        const real g = d + weight_decay * w;
@decoupled        const real g = d;
@decoupled        w -= lr * weight_decay * w;
        const real m = m_at[j] + fresh1 * (g - m_at[j]);
        const real v = beta2 * v_at[j] + fresh2 * g * g;
        m_at[j] = m;
        v_at[j] = v;
@!amsgrad        w -= step * (m / (ampc_sqrt(v) / correct2 + eps));
@amsgrad        u_at[j] = ampc_max(u_at[j], v);
@amsgrad        w -= step * (m / (ampc_sqrt(u_at[j]) / correct2 + eps));
@clamp1        w = ampc_max(low, ampc_min(w, high));
        w_at[j] = w;
@ema        average[j] = optimizer->taken == 1 ? w : average[j] + follow * (w - average[j]);
@copy16        copy16_to[j] = to_f16(w);
@copybf        copybf_to[j] = to_bf16(w);
        g_at[j] = R(0.0);
      }
      VECTOR_STORE(master + i, w_at);
      VECTOR_STORE(grad + i, g_at);
      VECTOR_STORE(moment1 + i, m_at);
      VECTOR_STORE(moment2 + i, v_at);
@amsgrad      VECTOR_STORE(moment3 + i, u_at);
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
