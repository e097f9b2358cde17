/* torch.optim.RMSprop over the range of a group of parameters, after g += decay w:
 *   v = alpha v + (1 - alpha) g^2;  s = g / (sqrt(v) + eps);  w -= lr s
 * With momentum, s is added to a buffer: b = momentum b + s;  w -= lr b. Gradients are cleared whether the
 * update is taken or not. */
__global__ void $name($arguments)
{
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay;
  const real alpha = $alpha, fresh = R(1.0) - alpha;
@moment1  const real momentum = $momentum;
  const real factor = (real)optimizer->factor;
  const int taken = !optimizer->found_inf;
@first_group  ONE_THREAD optimizer->lr = (float)lr;
  if (taken) {
    GRID_VECTORS(4, $index, i, $count) {
      VECTOR_LOAD(4, real, w_at, master + i);
      VECTOR_LOAD(4, real, g_at, grad + i);
@moment1      VECTOR_LOAD(4, real, m_at, moment1 + i);
      VECTOR_LOAD(4, real, v_at, moment2 + i);
@copy16      VECTOR_ROOM(4, f16, copy16_to, copy16 + i);
@copybf      VECTOR_ROOM(4, bf16, copybf_to, copybf + i);
      VECTOR_EACH(4, j) {
        real w = w_at[j];
        const real g = g_at[j] * factor + weight_decay * w;
        const real v = alpha * v_at[j] + fresh * g * g;
        real s = g / (ampc_sqrt(v) + eps);
@moment1        s += momentum * m_at[j];
@moment1        m_at[j] = s;
        w -= lr * s;
        v_at[j] = v;
        w_at[j] = w;
@copy16        copy16_to[j] = to_f16(w);
@copybf        copybf_to[j] = to_bf16(w);
        g_at[j] = R(0.0);
      }
      VECTOR_STORE(master + i, w_at);
      VECTOR_STORE(grad + i, g_at);
@moment1      VECTOR_STORE(moment1 + i, m_at);
      VECTOR_STORE(moment2 + i, v_at);
@copy16      VECTOR_STORE(copy16 + i, copy16_to);
@copybf      VECTOR_STORE(copybf + i, copybf_to);
    }
  } else {
    GRID_VECTORS(4, $index, i, $count) {
      VECTOR_ROOM(4, real, g_at, grad + i);
      VECTOR_EACH(4, j) g_at[j] = R(0.0);
      VECTOR_STORE(grad + i, g_at);
    }
  }
}
