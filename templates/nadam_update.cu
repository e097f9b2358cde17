/* torch.optim.NAdam. t is the number of updates, including this one:
 *   mu(t) = beta1 (1 - 0.96^(t momentum_decay) / 2);  p = mu(1) .. mu(t)
 *   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
 *   w -= lr ((1 - mu(t)) / (1 - p) g + mu(t + 1) / (1 - p mu(t + 1)) m) / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * moment3 is 1 - p, which is 0 before the first update. All weights have the same one. */
// --- constants
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay, beta1 = $beta1;
  const real beta2 = $beta2, fresh1 = R(1.0) - beta1, fresh2 = R(1.0) - beta2;
  const real t = (real)optimizer->taken, fall = R(-0.040821994520255167) * $momentum_decay;
  const real correct2 = ampc_sqrt(-ampc_expm1(t * ampc_log1p(-fresh2)));
  const real mu = beta1 * (R(1.0) - R(0.5) * ampc_exp(t * fall));
  const real next = beta1 * (R(1.0) - R(0.5) * ampc_exp((t + R(1.0)) * fall));
// --- formula
  const real m = m_at[j] + fresh1 * (g - m_at[j]);
  const real v = beta2 * v_at[j] + fresh2 * g * g;
  const real p = u_at[j] + (R(1.0) - u_at[j]) * (R(1.0) - mu);
  const real ahead = p + (R(1.0) - p) * (R(1.0) - next);
  w -= lr * ((R(1.0) - mu) / p * g + next / ahead * m) / (ampc_sqrt(v) / correct2 + eps);
  m_at[j] = m;
  v_at[j] = v;
  u_at[j] = p;
