/* Adds a gradient to its slot. */
__global__ void $name($arguments)
{
  GRID_LOOP($index, i, $count) {
    grad[i] += $value;
  }
}
