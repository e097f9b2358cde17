/* One block joins the sums of grad_norm and decides: is the update taken, and by what is a gradient
 * multiplied. Clipping as torch.nn.utils.clip_grad_norm_: min(1, clip / (norm + 1e-6)).
 * Without a loss scaler nothing can be done about a gradient that is not finite: it is treated as a
 * loss that is not finite, after which no update is taken and the weights stay as they were.
 * @scale: the optimizer has a loss scale of its own, which scaler_update moves. @micro: only the last body of a step decides. */
__global__ void $name($arguments)
{
@micro  ONE_THREAD {
@micro    optimizer->first = state->first;
@micro    optimizer->waits = !state->closes;
@micro    optimizer->found_inf = 0;
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
      const int bad = found > R(0.0) || state->bad_loss;
      const real norm = ampc_sqrt(sum);
@!scale      real factor = (real)state->inv_scale;
@scale      real factor = (real)(float)(1.0 / (double)$scale);
@clip_norm      factor *= ampc_min($clip_norm / (norm + R(1e-6)), R(1.0));
      optimizer->found_inf = bad;
      optimizer->grad_norm = (float)norm;
      optimizer->factor = (float)factor;
      optimizer->taken += !bad;
      if (bad) state->found_inf = 1;
@scale      optimizer->judged = 1;
@scale      if (bad) optimizer->overflowed = 1;
@unscaled      if (bad && !state->bad_loss) state->bad_loss = state->step + 1;
    }
  }
}
