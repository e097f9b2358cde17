/* torch.optim.Adam and AdamW. t is the number of updates, including this one:
 *   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
 *   w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * With amsgrad the largest v so far replaces v in the last formula. 1 - beta^t is computed from 1 -
 * beta, which is exact. */
// --- constants
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay;
  const real beta2 = $beta2, fresh1 = R(1.0) - $beta1, fresh2 = R(1.0) - beta2;
  const real t = (real)optimizer->taken;
  const real step = lr / -ampc_expm1(t * ampc_log1p(-fresh1));
  const real correct2 = ampc_sqrt(-ampc_expm1(t * ampc_log1p(-fresh2)));
// --- formula
  const real m = m_at[j] + fresh1 * (g - m_at[j]);
  const real v = beta2 * v_at[j] + fresh2 * g * g;
  m_at[j] = m;
  v_at[j] = v;
@!amsgrad  w -= step * (m / (ampc_sqrt(v) / correct2 + eps));
@amsgrad  u_at[j] = ampc_max(u_at[j], v);
@amsgrad  w -= step * (m / (ampc_sqrt(u_at[j]) / correct2 + eps));
