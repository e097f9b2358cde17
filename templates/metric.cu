/* Adds a number to its metric; the host computes averages later. $samples: how many samples the
 * number stands for. @labels: it is a mean over as many labels; without any it does not count.
 * @loss: the number is what `minimize` minimizes. Without a scaler the first loss that is not
 * finite ends all updates. With a scaler such a loss counts as an overflow of its step, unless
 * updates have already ended. @micro: a loss that is not finite in one body also counts for the
 * later bodies of the step. */
__global__ void $name($arguments)
{
  ONE_THREAD {
    const real value = $value;
@!labels    metric->sum += (double)value * $samples.0;
@!labels    metric->count += $samples.0;
@labels    metric->sum += $labels > R(0.0) ? (double)value * (double)$labels : 0.0;
@labels    metric->count += (double)$labels;
    metric->last = (float)value;
@loss@unscaled    if (!ampc_isfinite(value) && !state->bad_loss) state->bad_loss = state->step + 1;
@loss@!unscaled@!micro    if (state->bad_loss <= 0)
@loss@!unscaled@!micro      state->bad_loss = ampc_isfinite(value) ? 0 : -1 - state->step;
@loss@!unscaled@micro    const long long before =
@loss@!unscaled@micro        state->first && state->bad_loss < 0 ? 0 : state->bad_loss;
@loss@!unscaled@micro    if (before <= 0)
@loss@!unscaled@micro      state->bad_loss = ampc_isfinite(value) ? before : -1 - state->step;
  }
}
