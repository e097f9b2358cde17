/* One block combines the sums of grad_norm. The block decides whether the update is applied, and
 * computes the factor for the gradients. Clipping follows torch.nn.utils.clip_grad_norm_: min(1,
 * clip / (norm + 1e-6)). Without a loss scaler, a gradient that is not finite is treated as a loss
 * that is not finite: no update is applied from then on, and the weights stay as they are.
 * @skip_above: a norm above the bound only drops the update; the loss scale stays. @scale:
 * the optimizer has its own loss scale, which scaler_update changes. @replay: Note [replay] in
 * compiler/passes/gradient.c; @looks: this kernel only checks the gradients. @micro: a step has
 * several bodies, and only the last one decides. A loss that is not finite in any body drops the
 * update of the optimizers that minimize it. state->bad_loss knows only the latest loss, so each
 * optimizer remembers it in optimizer->overflowed. */
__global__ void $name($arguments)
{
@micro  ONE_THREAD {
@micro@!unscaled    if (!state->closes)
@micro@!unscaled      optimizer->overflowed = (!state->first && optimizer->overflowed) || state->bad_loss;
@micro@!looks    optimizer->first = state->first;
@micro@!looks    optimizer->waits = !state->closes;
@micro@!looks    if (!state->closes) optimizer->found_inf = 0;
@micro  }
@micro  if (state->closes)
  ROW_LOOP(256, int, row, 1) {
    ROW_PART(real, sum_part, R(0.0));
    ROW_PART(real, bad_part, R(0.0));
    ROW_REDUCE(1, 256, int, c, $partials, {
      VECTOR_EACH(1, j) {
        ROW_PUT(sum_part) += partials_at[2 * (c + j)];
        ROW_PUT(bad_part) += partials_at[2 * (c + j) + 1];
      }
    });
    const real sum = row_sum(sum_part, 256), found = row_sum(bad_part, 256);
    ROW_ONCE {
@micro@!unscaled      const int lost = (!state->first && optimizer->overflowed) || state->bad_loss;
@micro@!unscaled      optimizer->overflowed = lost;
@micro@!unscaled      if (lost && !state->bad_loss) state->bad_loss = -1 - state->step;
@!replay      const int bad = found > R(0.0) || state->bad_loss;
@replay      const int done = state->decided < state->passed, stopped = done || state->again;
@replay      const int bad = !stopped && (found > R(0.0) || state->bad_loss), held = stopped || bad;
@!looks      const real norm = ampc_sqrt(sum);
@!looks@!scale      real factor = (real)state->inv_scale;
@!looks@scale      real factor = (real)(float)(1.0 / (double)$scale);
@!looks@clip_norm      factor *= ampc_min($clip_norm / (norm + R(1e-6)), R(1.0));
@!looks@!replay      optimizer->found_inf = bad;
@!looks@replay      optimizer->found_inf = held;
@!looks@skip_above      if (!optimizer->found_inf && norm > $skip_above) optimizer->found_inf = state->dropped = 1;
@!looks@!replay      optimizer->grad_norm = (float)norm;
@!looks@replay      if (!done) optimizer->grad_norm = (float)norm;
@!looks      optimizer->factor = (float)factor;
@!looks      optimizer->taken += !optimizer->found_inf;
      if (bad) state->found_inf = 1;
@scale@!replay      optimizer->judged = 1;
@scale@replay      if (!stopped) optimizer->judged = 1;
@scale      if (bad) optimizer->overflowed = 1;
@replay@!scale      const int lower = state->dynamic && state->scale > state->min_scale;
@replay@scale      const int lower = state->dynamic && optimizer->scale > state->min_scale;
@replay      if (bad && lower && !state->bad_loss) state->again = 1;
@!looks@replay      else if (bad) state->dropped = 1;
@!looks@replay      state->passed += !done && !state->again;
@!looks@replay      state->decided++;
@unscaled      if (bad && !state->bad_loss) state->bad_loss = state->step + 1;
    }
  }
}
