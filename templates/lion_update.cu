/* Lion, Chen et al., 2023, algorithm 2: the step has the sign of a mean of m and g.
 *   w -= lr sign(m + (1 - beta1) (g - m));  m += (1 - beta2) (g - m) */
// --- constants
  const real lr = $lr, weight_decay = $weight_decay;
  const real fresh1 = R(1.0) - $beta1, fresh2 = R(1.0) - $beta2;
// --- formula
  w -= lr * ampc_sign(m_at[j] + fresh1 * (g - m_at[j]));
  m_at[j] += fresh2 * (g - m_at[j]);
