/* This file is the frame of updates of a group of parameters, element by element. The row of the
 * optimizer in compiler/graph/optimizers.def has the formula, which computes the new weight w from
 * w and g, the gradient after clipping and decay. m_at[j], v_at[j] and u_at[j] are the moments;
 * bf16 weights and moments in fewer bits are f32 there. Gradients are cleared whether the update is applied or
 * not. While `optimizer->waits` is set, gradients only accumulate. @sums: each part of the group
 * also gives the sum of the squares of its new weights and of their changes. The kernels of
 * LAMB and Muon use sections of this file, too: `walk` visits the parameters of a group, part by
 * part, and `step` is for values that a part has in common. */
__global__ void $name($arguments)
{
@sums@clamp1@!sliced  $lines parameters
  const real lr = $lr, weight_decay = $weight_decay;
  $constants
  $lines factor
  $lines limits
  if (taken) {
@!sums@!codes    GRID_VECTORS(4, $index, i, $count) {
@!sums@codes    GRID_CODES($index, i, $count) {
@!sums      $lines vectors
@!sums    }
@sums    ROW_LOOP(256, int, part, $partials) {
@sums      const $index begin = part * ($index)$part;
@sums      const $index rest = $count - begin;
@sums      const $index n = rest < 0 ? 0 : rest < $part ? rest : $part;
@sums      $lines summed
@sums    }
  $lines clear
}
// --- element
  real w = w_at[j];
  $lines gradient
@!decoupled@!decoupled_weight_decay  g += weight_decay * w;
@decoupled  w -= lr * weight_decay * w;
@decoupled_weight_decay  w -= lr * weight_decay * w;
  $formula
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
// --- summed
  ROW_PART(real, weight_part, R(0.0));
  ROW_PART(real, change_part, R(0.0));
@!codes  ROW_REDUCE(4, 256, $index, c, (n + 3) / 4 * 4, {
@codes  ROW_CODES(256, $index, c, n, {
    const $index i = begin + c;
    $lines vectors
  });
  const real weight = row_sum(weight_part, 256), change = row_sum(change_part, 256);
  ROW_ONCE {
    $out[2 * part] = weight;
    $out[2 * part + 1] = change;
  }
// --- vectors
  $lines draws
  $lines weights
  VECTOR_LOAD($vector, real, g_at, grad + i);
  $lines moments
@ema  VECTOR_LOAD($vector, real, average, ema + i);
@copy16  VECTOR_ROOM($vector, f16, copy16_to, copy16 + i);
@copybf  VECTOR_ROOM($vector, bf16, copybf_to, copybf + i);
@sums@clamp1@!sliced  TABLE_ROW(parameters, $params, 1, at, i);
  VECTOR_EACH($vector, j) {
@sums    const real before = w_at[j];
    $lines element
@clamp1    w = ampc_max(low, ampc_min(w, high));
@sums@clamp1@!sliced    if (i + j < parameters[at + 2]) { // not padding, which is 0 unless a clamp moves it
@sums@!codes    ROW_PUT(weight_part) += w * w;
@sums@!codes    ROW_PUT(change_part) += (w - before) * (w - before);
@sums@codes    ROW_PUT_CODE(weight_part) += w * w;
@sums@codes    ROW_PUT_CODE(change_part) += (w - before) * (w - before);
@sums@clamp1@!sliced    }
    w_at[j] = w;
@ema    average[j] = optimizer->taken == 1 ? w : average[j] + follow * (w - average[j]);
@copy16    copy16_to[j] = to_f16(w);
@copybf    copybf_to[j] = to_bf16(w);
    g_at[j] = R(0.0);
  }
@!bf16_weights  VECTOR_STORE(master + i, w_at);
@random_weights  BF16_STORE($vector, master + i, w_at, ampc_random_bf16(w_at[j], drawn[j]));
@residue  VECTOR_EACH($vector, j) w_at[j] = ampc_two_bf16(w_at[j]);
@bf16_weights@!random_weights  BF16_STORE($vector, master + i, w_at, to_bf16(w_at[j]));
@residue  BF16_STORE($vector, residue + i, rest_at, to_bf16(ampc_rest_bf16(w_at[j])));
  VECTOR_STORE(grad + i, g_at);
  $lines stores
@ema  VECTOR_STORE(ema + i, average);
@copy16  VECTOR_STORE(copy16 + i, copy16_to);
@copybf  VECTOR_STORE(copybf + i, copybf_to);
// --- draws
@draws  VECTOR_LOCAL($vector, unsigned, drawn);
@draws  ampc_element_words(drawn, state->seed, optimizer->taken, stream, i, VECTOR_WIDTH($vector));
@random_moments@moment2  VECTOR_LOCAL($vector, unsigned, more);
@random_moments@moment2  ampc_element_words(more, state->seed, optimizer->taken, stream | 1u << 30, i, VECTOR_WIDTH($vector));
// --- weights
@!bf16_weights  VECTOR_LOAD($vector, real, w_at, master + i);
@bf16_weights  BF16_LOAD($vector, w_at, master + i);
@residue  BF16_LOAD($vector, rest_at, residue + i);
@residue  VECTOR_EACH($vector, j) w_at[j] += rest_at[j];
// --- moments
@f32_moments@moment1  VECTOR_LOAD($vector, real, m_at, moment1 + i);
@f32_moments@moment2  VECTOR_LOAD($vector, real, v_at, moment2 + i);
@f32_moments@moment3  VECTOR_LOAD($vector, real, u_at, moment3 + i);
@bf16_moments@moment1  BF16_LOAD($vector, m_at, moment1 + i);
@bf16_moments@moment2  BF16_LOAD($vector, v_at, moment2 + i);
@bf16_moments@moment3  BF16_LOAD($vector, u_at, moment3 + i);
@codes@moment1  CODES_LOAD(m_at, moment1 + i, scale1[i / 256], $any_sign1);
@codes@moment2  CODES_LOAD(v_at, moment2 + i, scale2[i / 256], $any_sign2);
@codes@moment3  CODES_LOAD(u_at, moment3 + i, scale3[i / 256], $any_sign3);
// --- stores
@f32_moments@moment1  VECTOR_STORE(moment1 + i, m_at);
@f32_moments@moment2  VECTOR_STORE(moment2 + i, v_at);
@f32_moments@moment3  VECTOR_STORE(moment3 + i, u_at);
@random_moments@moment1  BF16_STORE($vector, moment1 + i, m_at, ampc_random_bf16(m_at[j], drawn[j] >> 16));
@random_moments@moment2  BF16_STORE($vector, moment2 + i, v_at, ampc_random_bf16(v_at[j], more[j]));
@random_moments@moment3  BF16_STORE($vector, moment3 + i, u_at, ampc_random_bf16(u_at[j], more[j] >> 16));
@bf16_moments@!random_moments@moment1  BF16_STORE($vector, moment1 + i, m_at, to_bf16(m_at[j]));
@bf16_moments@!random_moments@moment2  BF16_STORE($vector, moment2 + i, v_at, to_bf16(v_at[j]));
@bf16_moments@!random_moments@moment3  BF16_STORE($vector, moment3 + i, u_at, to_bf16(u_at[j]));
@codes@moment1  CODES_STORE(moment1 + i, m_at, scale1[i / 256], $any_sign1);
@codes@moment2  CODES_STORE(moment2 + i, v_at, scale2[i / 256], $any_sign2);
@codes@moment3  CODES_STORE(moment3 + i, u_at, scale3[i / 256], $any_sign3);
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
  TABLE_ROW(parameters, $params, 0, at, part);
  const $index begin = parameters[at + 1] + (part - parameters[at]) * $part;
  const $index rest = parameters[at + 2] - begin;
  const $index n = rest < $part ? rest : $part;
// --- walk
  if (taken) {
    ROW_LOOP(256, $index, part, $parts) {
      $lines part
      $lines step
@sums      $lines summed
@!sums      ROW_EACH(4, 256, $index, c, (n + 3) / 4 * 4, {
@!sums        const $index i = begin + c;
@!sums        $lines vectors
@!sums      });
    }
  $lines clear
// --- step
