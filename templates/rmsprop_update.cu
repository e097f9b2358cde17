/* torch.optim.RMSprop: v = alpha v + (1 - alpha) g^2;  s = g / (sqrt(v) + eps);  w -= lr s. With
 * `centered`, a = alpha a + (1 - alpha) g, and v - a^2 replaces v under the root, or 0 if rounding
 * makes it negative. With momentum, s is added to a buffer: b = momentum b + s;  w -= lr b. */
// --- constants
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay;
  const real alpha = $alpha, fresh = R(1.0) - alpha;
@moment1  const real momentum = $momentum;
// --- formula
  const real v = alpha * v_at[j] + fresh * g * g;
@!centered  real s = g / (ampc_sqrt(v) + eps);
@centered  const real a = u_at[j] + fresh * (g - u_at[j]);
@centered  real s = g / (ampc_sqrt(ampc_max(v - a * a, R(0.0))) + eps);
@centered  u_at[j] = a;
@moment1  s += momentum * m_at[j];
@moment1  m_at[j] = s;
  w -= lr * s;
  v_at[j] = v;
