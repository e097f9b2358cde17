/* Running statistics as torch.nn.BatchNorm: buffer = (1 - momentum) buffer + momentum $factor stat,
 * unless the step's gradients were not finite. */
__global__ void $name($arguments)
{
  if (!optimizer->found_inf) {
    GRID_LOOP($index, i, $count) {
      const real now = $factor * $stat;
      buffer[i] = (R(1.0) - $momentum) * buffer[i] + $momentum * now;
    }
  }
}
