/* Ends a train body. As torch.amp.GradScaler.update, with a floor and a ceiling: an overflow takes
 * the scale down and restarts the count; `growth_interval` steps without one take it up. Where the
 * scale cannot go down the count goes below zero: one for each body in a row that overflows.
 * @acts: the body has an optimizer; without one nothing was looked at, and the scale stays. */
__global__ void $name($arguments)
{
  ONE_THREAD {
@acts@micro    if (!state->closes) {
@acts@micro      /* the scale is held until the step's last body */
@acts@micro    } else if (state->found_inf) {
@acts@!micro    if (state->found_inf) {
@acts      const float lower = state->scale * state->backoff_factor;
@acts      const int lowest = !state->dynamic || state->scale <= state->min_scale;
@acts      state->skipped++;
@acts      state->growth = !lowest ? 0 : state->growth < 0 ? state->growth - 1 : -1;
@acts      if (!lowest) state->scale = lower > state->min_scale ? lower : state->min_scale;
@acts    } else {
@acts      if (state->growth < 0) state->growth = 0;
@acts      if (state->dynamic && ++state->growth == state->growth_interval) {
@acts        const float higher = state->scale * state->growth_factor;
@acts        state->scale = higher < state->max_scale ? higher : state->max_scale;
@acts        state->growth = 0;
@acts      }
@acts    }
@acts    state->inv_scale = (float)(1.0 / (double)state->scale);
@acts    state->found_inf = 0;
    state->body++;
@!micro    state->step++;
@micro    state->step += state->closes;
  }
}
