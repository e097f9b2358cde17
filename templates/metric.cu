/* A number to its metric: averages are made late, on the host. $samples: that it stands for.
 * @loss: it is what `minimize` minimizes; the first one that is not finite is noted. */
__global__ void $name($arguments)
{
  ONE_THREAD {
    const real value = $value;
    metric->sum += (double)value * $samples.0;
    metric->count += $samples.0;
    metric->last = (float)value;
@loss    if (!ampc_isfinite(value) && !state->bad_loss) state->bad_loss = state->body + 1;
  }
}
