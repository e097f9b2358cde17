/* torch.optim.RAdam. t is the number of updates, including this one:
 *   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2;  s = lr m / (1 - beta1^t)
 *   w -= s r sqrt(1 - beta2^t) / (sqrt(v) + eps), if n(t) > 5; otherwise w -= s
 *   r^2 = (n - 4) (n - 2) N / ((N - 4) (N - 2) n), N = (1 + beta2) / (1 - beta2)
 *   n(t) = N - 2 t beta2^t / (1 - beta2^t) = t + L(a / 2) - t L(t a / 2), a = -log(beta2), L(x) = coth(x) - 1 / x
 * If beta2 is near 1, the first form of n is a difference of large numbers; the second is not. */
// --- constants
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay;
  const real beta2 = $beta2, fresh1 = R(1.0) - $beta1, fresh2 = R(1.0) - beta2;
  const real t = (real)optimizer->taken, a = -ampc_log1p(-fresh2);
  const real step = lr / -ampc_expm1(t * ampc_log1p(-fresh1));
  const real n = t * (R(1.0) - ampc_langevin(t * a * R(0.5))) + ampc_langevin(a * R(0.5));
  const real limit = (R(1.0) + beta2) / fresh2;
  const int adapts = n > R(5.0);
  const real share = (n - R(4.0)) / (limit - R(4.0)) * ((n - R(2.0)) / (limit - R(2.0))) * (limit / n);
  const real rectified = ampc_sqrt(adapts ? share * -ampc_expm1(-t * a) : R(0.0));
// --- formula
  const real m = m_at[j] + fresh1 * (g - m_at[j]);
  const real v = beta2 * v_at[j] + fresh2 * g * g;
  m_at[j] = m;
  v_at[j] = v;
  w -= step * (adapts ? m * (rectified / (ampc_sqrt(v) + eps)) : m);
