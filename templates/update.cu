/* This file is the frame of updates of a group of parameters, element by element. templates/<op>.cu
 * has the formula of an update as two sections: `constants`, and `formula`, which computes the new
 * weight w from w and g, the gradient after clipping and decay. m_at[j], v_at[j] and u_at[j] are
 * the moments 1 to 3. Gradients are cleared whether the update is applied or not. While
 * `optimizer->waits` is set, gradients only accumulate. Sections that the frame does not use are
 * for LAMB's kernels. */
__global__ void $name($arguments)
{
  $lines constants
  $lines factor
  $lines limits
  if (taken) {
    GRID_VECTORS(4, $index, i, $count) {
      $lines vectors
    }
  $lines clear
}
// --- element
  real w = w_at[j];
  $lines gradient
@!decoupled  g += weight_decay * w;
@decoupled  w -= lr * weight_decay * w;
  $lines formula
// --- factor
  const real factor = (real)optimizer->factor;
@clip_value  const real most = $clip_value;
// --- gradient
  real g = g_at[j] * factor;
@clip_value  g = ampc_max(-most, ampc_min(g, most));
@maximize  g = -g;
// --- taken
@!micro  const int taken = !optimizer->found_inf;
@micro  const int taken = !optimizer->found_inf && !optimizer->waits;
// --- limits
@clamp1  const real low = $clamp1, high = $clamp2;
@ema  const real follow = R(1.0) - $ema;
  $lines taken
@first_group  ONE_THREAD optimizer->lr = (float)lr;
// --- vectors
  VECTOR_LOAD(4, real, w_at, master + i);
  VECTOR_LOAD(4, real, g_at, grad + i);
@moment1  VECTOR_LOAD(4, real, m_at, moment1 + i);
@moment2  VECTOR_LOAD(4, real, v_at, moment2 + i);
@moment3  VECTOR_LOAD(4, real, u_at, moment3 + i);
@ema  VECTOR_LOAD(4, real, average, ema + i);
@copy16  VECTOR_ROOM(4, f16, copy16_to, copy16 + i);
@copybf  VECTOR_ROOM(4, bf16, copybf_to, copybf + i);
  VECTOR_EACH(4, j) {
    $lines element
@clamp1    w = ampc_max(low, ampc_min(w, high));
    w_at[j] = w;
@ema    average[j] = optimizer->taken == 1 ? w : average[j] + follow * (w - average[j]);
@copy16    copy16_to[j] = to_f16(w);
@copybf    copybf_to[j] = to_bf16(w);
    g_at[j] = R(0.0);
  }
  VECTOR_STORE(master + i, w_at);
  VECTOR_STORE(grad + i, g_at);
@moment1  VECTOR_STORE(moment1 + i, m_at);
@moment2  VECTOR_STORE(moment2 + i, v_at);
@moment3  VECTOR_STORE(moment3 + i, u_at);
@ema  VECTOR_STORE(ema + i, average);
@copy16  VECTOR_STORE(copy16 + i, copy16_to);
@copybf  VECTOR_STORE(copybf + i, copybf_to);
// --- clear
@!micro  } else {
@micro  } else if (!optimizer->waits) {
    GRID_VECTORS(4, $index, i, $count) {
      VECTOR_ROOM(4, real, g_at, grad + i);
      VECTOR_EACH(4, j) g_at[j] = R(0.0);
      VECTOR_STORE(grad + i, g_at);
    }
  }
// --- parameters
  TABLE($index, parameters) = {
  $parameters
  };
// --- part
  TABLE_ROW(parameters, $params, at, part);
  const $index begin = parameters[at + 1] + (part - parameters[at]) * $part;
  const $index rest = parameters[at + 2] - begin;
  const $index n = rest < $part ? rest : $part;
