/* Counts the updates of running statistics. */
__global__ void $name($arguments)
{
  ONE_THREAD buffer[0] += !optimizer->found_inf;
}
