/* A number to its metric: averages are made late, on the host. $samples: that it stands for.
 * @loss: it is what `minimize` minimizes. Without a scaler the first one that is not finite ends
 * all updates; with one it is an overflow of its step, unless updates have ended already. @micro:
 * what a body of the step has found holds for those after it. */
__global__ void $name($arguments)
{
  ONE_THREAD {
    const real value = $value;
    metric->sum += (double)value * $samples.0;
    metric->count += $samples.0;
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
