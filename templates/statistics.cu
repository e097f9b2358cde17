/* Statistics to their metric, each to its own slot. What is counted comes as integers and is added
 * in double: it stays exact. The metric itself is worked out late, on the host. */
__global__ void $name($arguments)
{
  GRID_LOOP($index, i, $count) {
    metric[i].sum += (double)values_at[i];
    metric[i].count += $samples.0;
    metric[i].last = (float)values_at[i];
  }
}
