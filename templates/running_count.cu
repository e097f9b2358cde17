/* Counts the updates of running statistics. @micro: a step has several bodies; if it is
 * skipped, none of them counts. */
__global__ void $name($arguments)
{
@!micro  ONE_THREAD buffer[0] += !optimizer->found_inf;
@micro  ONE_THREAD {
@micro    if (optimizer->first) kept[0] = buffer[0];
@micro    buffer[0] = optimizer->found_inf ? kept[0] : buffer[0] + 1;
@micro  }
}
