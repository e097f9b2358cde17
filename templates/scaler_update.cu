/* The last kernel of a train body. It updates the loss scale with ampc_move_scale(). @scales: each
 * optimizer has a scale, which changes if the optimizer has decided in this body; the optimizers
 * are stored after ampc_state. @replay: a step that will run again is not counted, and its bodies
 * get the same numbers again. @acts: the body has an optimizer; without one no gradient was
 * checked, and the scale stays. */
__global__ void $name($arguments)
{
  ONE_THREAD {
@acts@micro    if (state->closes) { /* the scale changes only in the step's last body */
@acts@!micro    {
@acts@!scales      ampc_move_scale(state, state->found_inf, &state->scale, &state->growth,
@acts@!scales          &state->spared);
@acts@scales      ampc_optimizer *own = (ampc_optimizer *)(state + 1);
@acts@scales      for (int i = 0; i < $optimizers; i++) {
@acts@scales        if (own[i].judged)
@acts@scales          ampc_move_scale(state, own[i].overflowed, &own[i].scale, &own[i].growth,
@acts@scales              &own[i].spared);
@acts@scales        own[i].inv_scale = (float)(1.0 / (double)own[i].scale);
@acts@scales        own[i].judged = own[i].overflowed = 0;
@acts@scales        if (i == 0 || own[i].scale < state->scale) state->scale = own[i].scale;
@acts@scales        if (i == 0 || own[i].growth < state->growth) state->growth = own[i].growth;
@acts@scales      }
@acts@!replay      state->skipped += state->found_inf || state->dropped;
@acts@!replay      state->dropped = 0;
@acts@replay      state->replay = state->again;
@acts@replay      state->replayed += state->again;
@acts@replay      if (!state->again) {
@acts@replay        state->skipped += state->dropped;
@acts@replay        state->dropped = state->passed = 0;
@acts@replay      }
@acts@replay      state->decided = state->again = 0;
@acts    }
@acts    state->inv_scale = (float)(1.0 / (double)state->scale);
@acts    state->found_inf = 0;
@!replay    state->body++;
@!replay@!micro    state->step++;
@!replay@micro    state->step += state->closes;
@replay@!micro    const int again = state->replay;
@replay@!micro    if (!again) state->body++;
@replay@!micro    state->step += !again;
@replay@micro    const int again = state->closes && state->replay;
@replay@micro    if (state->first) state->begun = state->body;
@replay@micro    state->body = again ? state->begun : state->body + 1;
@replay@micro    state->step += state->closes && !again;
  }
}
