/* torch.optim.RMSprop over the range of a group of parameters, after g += decay w:
 *   v = alpha v + (1 - alpha) g^2;  s = g / (sqrt(v) + eps);  w -= lr s
 * centered: a = alpha a + (1 - alpha) g, and v - a^2 stands for v under the root (0 where rounding makes it
 * less). With momentum, s is added to a buffer: b = momentum b + s;  w -= lr b. Gradients are cleared whether
 * the update is taken or not. */
__global__ void $name($arguments)
{
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay;
  const real alpha = $alpha, fresh = R(1.0) - alpha;
@moment1  const real momentum = $momentum;
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
@moment1      VECTOR_LOAD(4, real, m_at, moment1 + i);
      VECTOR_LOAD(4, real, v_at, moment2 + i);
@centered      VECTOR_LOAD(4, real, u_at, moment3 + i);
@ema      VECTOR_LOAD(4, real, average, ema + i);
@copy16      VECTOR_ROOM(4, f16, copy16_to, copy16 + i);
@copybf      VECTOR_ROOM(4, bf16, copybf_to, copybf + i);
      VECTOR_EACH(4, j) {
        real w = w_at[j];
        real d = g_at[j] * factor;
@clip_value        d = ampc_max(-most, ampc_min(d, most));
@maximize        d = -d;
        const real g = d + weight_decay * w;
        const real v = alpha * v_at[j] + fresh * g * g;
@!centered        real s = g / (ampc_sqrt(v) + eps);
@centered        const real a = u_at[j] + fresh * (g - u_at[j]);
@centered        real s = g / (ampc_sqrt(ampc_max(v - a * a, R(0.0))) + eps);
@centered        u_at[j] = a;
@moment1        s += momentum * m_at[j];
@moment1        m_at[j] = s;
        w -= lr * s;
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
@moment1      VECTOR_STORE(moment1 + i, m_at);
      VECTOR_STORE(moment2 + i, v_at);
@centered      VECTOR_STORE(moment3 + i, u_at);
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
