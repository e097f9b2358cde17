/* Ends a train body: the scale moves as ampc_move_scale() says.
 * @acts: the body has an optimizer; without one nothing was looked at, and the scale stays. */
__global__ void $name($arguments)
{
  ONE_THREAD {
@acts@micro    if (state->closes) { /* the scale is held until the step's last body */
@acts@!micro    {
@acts      ampc_move_scale(state, state->found_inf, &state->scale, &state->growth, &state->spared);
@acts      state->skipped += state->found_inf;
@acts    }
@acts    state->inv_scale = (float)(1.0 / (double)state->scale);
@acts    state->found_inf = 0;
    state->body++;
@!micro    state->step++;
@micro    state->step += state->closes;
  }
}
