/* Gives the sum of $x over the earlier bodies of a step. @adds: adds that of this body. */
__global__ void $name($arguments)
{
  ONE_THREAD {
    const real before = state->first ? R(0.0) : (real)metric->counted;
@!adds    $out[0] = before;
@adds    const real all = before + $x;
@adds    $out[0] = all;
@adds    metric->counted = (float)all;
  }
}
