/* Running statistics as in torch.nn.BatchNorm: buffer = (1 - momentum) buffer + momentum $factor
 * stat, unless the gradients of the step are not finite. @micro: each body of a step updates them.
 * If the step is skipped, its last body restores the buffer as it was before the first body. */
__global__ void $name($arguments)
{
@!micro  if (!optimizer->found_inf) {
@micro  const int first = optimizer->first, skipped = optimizer->found_inf;
@micro  {
    GRID_LOOP($index, i, $count) {
      const real now = $factor * $stat;
@!micro      buffer[i] = (R(1.0) - $momentum) * buffer[i] + $momentum * now;
@micro      const real was = buffer[i];
@micro      if (first) kept[i] = was;
@micro      buffer[i] = skipped ? kept[i] : (R(1.0) - $momentum) * was + $momentum * now;
    }
  }
}
