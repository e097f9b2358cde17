/* torch.optim.SGD: the buffer is g in the first update, then momentum buffer + (1 - dampening) g.
 * Nesterov steps along g + momentum buffer. */
// --- constants
  const real lr = $lr, weight_decay = $weight_decay;
@moment1  const real momentum = $momentum, fresh = R(1.0) - $dampening;
@moment1  const int first = optimizer->taken == 1;
// --- formula
@moment1  const real b = first ? g : momentum * m_at[j] + fresh * g;
@moment1  m_at[j] = b;
@nesterov  g += momentum * b;
@moment1@!nesterov  g = b;
  w -= lr * g;
