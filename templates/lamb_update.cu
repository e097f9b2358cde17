/* The last kernel of LAMB; Note [lamb] in compiler/graph/optimizers.def has its formula. */
__global__ void $name($arguments)
{
  $lines parameters
  const real lr = $lr;
@!always_adapt  const int adapts = $weight_decay != R(0.0);
  $lines limits
  $lines walk
}
// --- step
@always_adapt  const real step = lr * ratio_at[at / 3];
@!always_adapt  const real step = adapts ? lr * ratio_at[at / 3] : lr;
// --- element
  real w = w_at[j] - step * g_at[j];
