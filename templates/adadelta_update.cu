/* torch.optim.Adadelta: v is the running mean of g^2, m the running mean of s^2, where lr s is the
 * change of a weight. */
// --- constants
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay, rho = $rho, fresh = R(1.0) - rho;
// --- formula
  v_at[j] = rho * v_at[j] + fresh * g * g;
  const real s = ampc_sqrt(m_at[j] + eps) / ampc_sqrt(v_at[j] + eps) * g;
  m_at[j] = rho * m_at[j] + fresh * s * s;
  w -= lr * s;
