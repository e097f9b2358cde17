/* Counts the updates of running statistics. @micro: no body of a skipped step counts. */
__global__ void $name($arguments)
{
@!micro  ONE_THREAD buffer[0] += !optimizer->found_inf;
@micro  ONE_THREAD {
@micro    if (optimizer->first) kept[0] = buffer[0];
@micro    buffer[0] = optimizer->found_inf ? kept[0] : buffer[0] + 1;
@micro  }
}
