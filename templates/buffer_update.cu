/* Stores what a method assigns to a Buffer, unless the gradients of the step are not finite.
 * @micro: each body of a step assigns. If the step is skipped, its last body restores the value
 * that the buffer had before the first body. */
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
