/* Running statistics as torch.nn.BatchNorm: buffer = (1 - momentum) buffer + momentum $factor stat,
 * unless the step's gradients were not finite. @micro: each body updates them, and the last one of
 * a step that is skipped puts back what was there before the first. */
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
