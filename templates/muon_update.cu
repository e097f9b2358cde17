/* Note [muon]: the last kernel of Muon. The slots of the gradients have the change of the weights. */
__global__ void $name($arguments)
{
  $lines parameters
  const real lr = $lr, weight_decay = $weight_decay;
  $lines limits
  if (taken) {
    ROW_LOOP(256, $index, part, $parts) {
      $lines part
@sums      $lines summed
@!sums      ROW_EACH(4, 256, $index, c, (n + 3) / 4 * 4, {
@!sums        const $index i = begin + c;
@!sums        $lines vectors
@!sums      });
    }
  $lines clear
}
// --- element
  real w = w_at[j];
  w -= lr * weight_decay * w;
  w -= lr * g_at[j];
