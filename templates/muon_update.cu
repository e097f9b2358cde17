/* Note [muon]: the last kernel of Muon. The slots of the gradients have the change of the weights. */
__global__ void $name($arguments)
{
  $lines parameters
  const real lr = $lr, weight_decay = $weight_decay;
  $lines limits
  $lines walk
}
// --- element
  real w = w_at[j];
  w -= lr * weight_decay * w;
  w -= lr * g_at[j];
