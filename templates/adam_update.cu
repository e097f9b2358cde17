/* torch.optim.Adam and AdamW over the range of a group of parameters. t updates were taken, this one included:
 *   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
 *   w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * Adam adds decay w to g; AdamW shrinks w by lr decay instead. 1 - beta^t is computed from 1 - beta,
 * which is exact. Gradients are cleared whether the update is taken or not. */
__global__ void $name($arguments)
{
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay;
  const real beta2 = $beta2, fresh1 = R(1.0) - $beta1, fresh2 = R(1.0) - beta2;
  const real t = (real)optimizer->taken;
  const real step = lr / -ampc_expm1(t * ampc_log1p(-fresh1));
  const real correct2 = ampc_sqrt(-ampc_expm1(t * ampc_log1p(-fresh2)));
  const real factor = (real)optimizer->factor;
  const int taken = !optimizer->found_inf;
@first_group  ONE_THREAD optimizer->lr = (float)lr;
  if (taken) {
    GRID_LOOP($index, i, $count) {
      real w = master[i];
@!decoupled      const real g = grad[i] * factor + weight_decay * w;
@decoupled      const real g = grad[i] * factor;
@decoupled      w -= lr * weight_decay * w;
      const real m = moment1[i] + fresh1 * (g - moment1[i]);
      const real v = beta2 * moment2[i] + fresh2 * g * g;
      w -= step * (m / (ampc_sqrt(v) / correct2 + eps));
      moment1[i] = m;
      moment2[i] = v;
      master[i] = w;
@copy16      copy16[i] = to_f16(w);
@copybf      copybf[i] = to_bf16(w);
      grad[i] = R(0.0);
    }
  } else {
    GRID_LOOP($index, i, $count) grad[i] = R(0.0);
  }
}
