/* What a method assigns to a Buffer, unless the step's gradients were not finite. @micro: each body
 * assigns, and the last one of a step that is skipped puts back what was there before the first. */
__global__ void $name($arguments)
{
@!micro  if (!optimizer->found_inf) {
@!micro    GRID_LOOP($index, i, $count) buffer[i] = $value;
@!micro  }
@micro  const int first = optimizer->first, skipped = optimizer->found_inf;
@micro  GRID_LOOP($index, i, $count) {
@micro    if (first) kept[i] = buffer[i];
@micro    if (skipped)
@micro      buffer[i] = kept[i];
@micro    else
@micro      buffer[i] = $value;
@micro  }
}
