/* Adds a number to its metric; the host computes averages later. $samples: how many samples the
 * number stands for. @loss: the number is what `minimize` minimizes. Without a scaler the first
 * loss that is not finite ends all updates. With a scaler such a loss counts as an overflow of its
 * step, unless updates have already ended. */
__global__ void $name($arguments)
{
  ONE_THREAD {
    const real value = $value;
    metric->sum += (double)value * $samples.0;
    metric->count += $samples.0;
    metric->last = (float)value;
@loss@unscaled    if (!ampc_isfinite(value) && !state->bad_loss) state->bad_loss = state->step + 1;
@loss@!unscaled    if (state->bad_loss <= 0)
@loss@!unscaled      state->bad_loss = ampc_isfinite(value) ? 0 : -1 - state->step;
  }
}
