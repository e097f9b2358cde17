/* Running statistics as torch.nn.BatchNorm: buffer = (1 - momentum) buffer + momentum $factor stat,
 * unless the step's gradients were not finite. */
__global__ void $name($arguments)
{
  if (!optimizer->found_inf) {
    GRID_LOOP($index, i, $count)
      buffer[i] = (R(1.0) - $momentum) * buffer[i] + $momentum * ($factor * $stat);
  }
}
