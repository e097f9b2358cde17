/* Stores what is assigned to a Buffer, unless the gradients of the step are not finite. @micro: a
 * step has several bodies. Each assigns; if the step is skipped, its last body restores the value
 * that the buffer had before the first body. With @once only the last body assigns. @decay: the
 * value is mixed with that of the buffer. */
__global__ void $name($arguments)
{
@!micro@!once  if (!optimizer->found_inf) {
@!micro@!once    GRID_LOOP($index, i, $count) buffer[i] = $value;
@!micro@!once  }
@!micro@once  if (!optimizer->found_inf) {
@micro@once  if (!optimizer->waits && !optimizer->found_inf) {
@once@!decay    GRID_LOOP($index, i, $count) buffer[i] = $value;
@once@decay    GRID_LOOP($index, i, $count) buffer[i] = $decay * buffer[i] + $rest * $value;
@once  }
@micro@!once  const int first = optimizer->first, skipped = optimizer->found_inf;
@micro@!once  GRID_LOOP($index, i, $count) {
@micro@!once    if (first) kept[i] = buffer[i];
@micro@!once    if (skipped)
@micro@!once      buffer[i] = kept[i];
@micro@!once    else
@micro@!once      buffer[i] = $value;
@micro@!once  }
}
