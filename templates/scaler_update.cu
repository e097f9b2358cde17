/* Ends a train body: the scale moves as ampc_move_scale() says. @scales: each optimizer has one, which moves
 * where it has decided in this body; they lie behind ampc_state.
 * @acts: the body has an optimizer; without one nothing was looked at, and the scale stays. */
__global__ void $name($arguments)
{
  ONE_THREAD {
@acts@micro    if (state->closes) { /* the scale is held until the step's last body */
@acts@!micro    {
@acts@!scales      ampc_move_scale(state, state->found_inf, &state->scale, &state->growth, &state->spared);
@acts@scales      ampc_optimizer *own = (ampc_optimizer *)(state + 1);
@acts@scales      for (int i = 0; i < $optimizers; i++) {
@acts@scales        if (own[i].judged)
@acts@scales          ampc_move_scale(state, own[i].overflowed, &own[i].scale, &own[i].growth, &own[i].spared);
@acts@scales        own[i].inv_scale = (float)(1.0 / (double)own[i].scale);
@acts@scales        own[i].judged = own[i].overflowed = 0;
@acts@scales        if (i == 0 || own[i].scale < state->scale) state->scale = own[i].scale;
@acts@scales        if (i == 0 || own[i].growth < state->growth) state->growth = own[i].growth;
@acts@scales      }
@acts      state->skipped += state->found_inf;
@acts    }
@acts    state->inv_scale = (float)(1.0 / (double)state->scale);
@acts    state->found_inf = 0;
    state->body++;
@!micro    state->step++;
@micro    state->step += state->closes;
  }
}
