/* Ends a train body. As torch.amp.GradScaler.update, with a floor and a ceiling: an overflow takes
 * the scale down and restarts the count; `growth_interval` steps without one take it up. Where the
 * scale cannot go down the count goes below zero: one for each body in a row that overflows. */
__global__ void $name($arguments)
{
  ONE_THREAD {
@micro    if (!state->closes) {
@micro      /* the scale is held until the step's last body */
@micro    } else if (state->found_inf) {
@!micro    if (state->found_inf) {
      const float lower = state->scale * state->backoff_factor;
      const int lowest = !state->dynamic || state->scale <= state->min_scale;
      state->skipped++;
      state->growth = !lowest ? 0 : state->growth < 0 ? state->growth - 1 : -1;
      if (!lowest) state->scale = lower > state->min_scale ? lower : state->min_scale;
    } else {
      if (state->growth < 0) state->growth = 0;
      if (state->dynamic && ++state->growth == state->growth_interval) {
        const float higher = state->scale * state->growth_factor;
        state->scale = higher < state->max_scale ? higher : state->max_scale;
        state->growth = 0;
      }
    }
    state->inv_scale = (float)(1.0 / (double)state->scale);
    state->found_inf = 0;
    state->body++;
@!micro    state->step++;
@micro    state->step += state->closes;
  }
}
