/* Adds a number to its metric; the host computes averages later. $samples: how many samples the
 * number stands for. @weight: it stands for $weight of them. @empty: a number that is a mean of no
 * elements is left out, and is no loss that is not finite. @loss: the number is what `minimize`
 * minimizes. Without a scaler the first loss that is not finite ends all updates. With a scaler
 * such a loss counts as an overflow of its step, unless updates have already ended. */
__global__ void $name($arguments)
{
  ONE_THREAD {
@!empty    const real value = $value;
@empty    const int empty = $empty != R(0.0);
@empty    const real value = empty ? R(0.0) : $value;
@empty@loss    state->empty += empty;
@!weight    metric->sum += (double)value * $samples.0;
@!weight@!empty    metric->count += $samples.0;
@!weight@empty    metric->count += empty ? 0.0 : $samples.0;
@weight    metric->sum += (double)value * (double)$weight;
@weight    metric->count += (double)$weight;
@!empty    metric->last = (float)value;
@empty    if (!empty) metric->last = (float)value;
@loss@unscaled    if (!ampc_isfinite(value) && !state->bad_loss) state->bad_loss = state->step + 1;
@loss@!unscaled    if (state->bad_loss <= 0)
@loss@!unscaled      state->bad_loss = ampc_isfinite(value) ? 0 : -1 - state->step;
  }
}
