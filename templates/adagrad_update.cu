/* torch.optim.Adagrad. t is the number of updates, including this one. The sum starts at
 * initial_accumulator_value:
 *   sum += g^2;  w -= lr / (1 + (t - 1) lr_decay) g / (sqrt(sum) + eps) */
// --- constants
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay;
  const real initial = $initial_accumulator_value;
  const int first = optimizer->taken == 1;
  const real step = lr / (R(1.0) + (real)(optimizer->taken - 1) * $lr_decay);
// --- formula
  const real v = (first ? initial : v_at[j]) + g * g;
  w -= step * (g / (ampc_sqrt(v) + eps));
  v_at[j] = v;
