/* torch.optim.RMSprop over the range of a group of parameters, after g += decay w:
 *   v = alpha v + (1 - alpha) g^2;  s = g / (sqrt(v) + eps);  w -= lr s
 * With momentum, s is added to a buffer: b = momentum b + s;  w -= lr b. Gradients are cleared whether the
 * update is taken or not. */
__global__ void $name($arguments)
{
  const real lr = $lr, eps = $eps, weight_decay = $weight_decay;
  const real alpha = $alpha, fresh = R(1.0) - alpha;
@moment1  const real momentum = $momentum;
  const real factor = (real)optimizer->factor;
  const int taken = !optimizer->found_inf;
@first_group  ONE_THREAD optimizer->lr = (float)lr;
  if (taken) {
    GRID_LOOP($index, i, $count) {
      real w = master[i];
      const real g = grad[i] * factor + weight_decay * w;
      const real v = alpha * moment2[i] + fresh * g * g;
      real s = g / (ampc_sqrt(v) + eps);
@moment1      s += momentum * moment1[i];
@moment1      moment1[i] = s;
      w -= lr * s;
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
