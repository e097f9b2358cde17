/* torch.optim.SGD over the range of a group of parameters: g += decay w; the buffer is g at the first update,
 * then momentum buffer + (1 - dampening) g; Nesterov steps along g + momentum buffer. Gradients are
 * cleared whether the update is taken or not. */
__global__ void $name($arguments)
{
  const real lr = $lr, weight_decay = $weight_decay;
@moment1  const real momentum = $momentum, fresh = R(1.0) - $dampening;
@moment1  const int first = optimizer->taken == 1;
  const real factor = (real)optimizer->factor;
  const int taken = !optimizer->found_inf;
@first_group  ONE_THREAD optimizer->lr = (float)lr;
  if (taken) {
    GRID_LOOP($index, i, $count) {
      real w = master[i];
      real g = grad[i] * factor + weight_decay * w;
@moment1      const real b = first ? g : momentum * moment1[i] + fresh * g;
@moment1      moment1[i] = b;
@nesterov      g += momentum * b;
@moment1@!nesterov      g = b;
      w -= lr * g;
      master[i] = w;
@copy16      copy16[i] = to_f16(w);
@copybf      copybf[i] = to_bf16(w);
      grad[i] = R(0.0);
    }
  } else {
    GRID_LOOP($index, i, $count) grad[i] = R(0.0);
  }
}
