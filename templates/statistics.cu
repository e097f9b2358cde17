/* Adds statistics to their metric, each to its own number there. Counts come as integers and are
 * added in double, so they stay exact. The host computes the metric from them later. */
__global__ void $name($arguments)
{
  GRID_LOOP($index, i, $count) {
    metric[i].sum += (double)values_at[i];
    metric[i].count += $samples.0;
    metric[i].last = (float)values_at[i];
  }
}
