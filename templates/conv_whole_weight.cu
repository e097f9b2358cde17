/* Computes the gradient of the weights of a convolution with few channels per group: Note [whole]
 * in conv_columns.h. It takes up to three passes, each a launch. The arguments that are not NULL
 * select the pass. */
__global__ void $name($arguments)
{
  if (x) { /* sums of parts of the pixels: a thread has a tap, a channel and neighbouring filters */
    GRID_ROW_VECTORS($vector, $index, cell, k, $sum_rows, $row) {
      const int part = (int)(cell / $part_rows), of = (int)(cell % $part_rows);
@depthwise      const int tap = of;
@!depthwise      const int tap = of / $channels % ($taps), c = $channel;
@grouped      const int group = of / $channels / ($taps);
      const $index first = ($index)part * $part_pixels;
      const $index last = first + $part_pixels < $pixels ? first + $part_pixels : $pixels;
      VECTOR_LOCAL($vector, real, sum);
      VECTOR_EACH($vector, j) sum[j] = R(0.0);
#pragma unroll 4
      for ($index pixel = first; pixel < last; pixel++) {
        const $index image = pixel / ($out_pixels);
        const int at = (int)(pixel - image * ($out_pixels));
@deep        const int z = $seen_d;
        const int row = $seen_h;
        const int column = $seen_w;
@deep        const int inside =
@deep            z >= 0 && z < $d && row >= 0 && row < $h && column >= 0 && column < $w;
@flat        const int inside = row >= 0 && row < $h && column >= 0 && column < $w;
@deep        const $index seen = ((image * $d + z) * $h + row) * $w + column;
@flat        const $index seen = (image * $h + row) * $w + column;
        const $index from = inside ? seen : 0; /* any valid address: the value is not used */
@vectors@grouped        VECTOR_LOAD($vector, $y_type, gradients,
@vectors@grouped            dy + pixel * $k + group * $filters + k);
@vectors@!grouped        VECTOR_LOAD($vector, $y_type, gradients, dy + pixel * $k + k);
@grouped        const real seen_there = $from_x(x[from * $c + group * $channels + c]);
@!depthwise@!grouped        const real seen_there = $from_x(x[from * $c + c]);
@!depthwise        const real value = inside ? seen_there : R(0.0);
@!depthwise@vectors        VECTOR_EACH($vector, j)
@!depthwise@vectors          sum[j] = ampc_fma(value, $from_y(gradients[j]), sum[j]);
@!vectors@!depthwise        VECTOR_EACH($vector, j)
@!vectors@!depthwise          sum[j] = ampc_fma(value,
@!vectors@grouped              $from_y(dy[pixel * $k + group * $filters + k + j]), sum[j]);
@!vectors@!grouped@!depthwise              $from_y(dy[pixel * $k + k + j]), sum[j]);
@depthwise@vectors        VECTOR_LOAD($vector, $x_type, channels, x + from * $c + k);
@depthwise@vectors        VECTOR_EACH($vector, j)
@depthwise@vectors          sum[j] = ampc_fma($from_x(inside ? channels[j] : 0),
@depthwise@vectors              $from_y(gradients[j]), sum[j]);
@depthwise@!vectors        VECTOR_EACH($vector, j)
@depthwise@!vectors          sum[j] = ampc_fma(inside ? $from_x(x[from * $c + k + j]) : R(0.0),
@depthwise@!vectors              $from_y(dy[pixel * $k + k + j]), sum[j]);
      }
      real *const to = sums + part * $weights;
@depthwise      VECTOR_EACH($vector, j) to[(k + j) * ($taps) + tap] = sum[j];
@grouped      VECTOR_EACH($vector, j)
@grouped        to[((group * $filters + k + j) * ($taps) + tap) * $channels + c] = sum[j];
@!depthwise@!grouped      VECTOR_EACH($vector, j)
@!depthwise@!grouped        to[((k + j) * ($taps) + tap) * $channels + c] = sum[j];
    }
  }
@joined  if (!x && !dw) { /* adds $join neighbouring parts at a time */
@joined    GRID_LOOP($index, i, $join_elements) {
@joined      const int first = (int)(i / $weights) * $join;
@joined      const int last = first + $join < $sums ? first + $join : $sums;
@joined      real sum = R(0.0);
@joined#pragma unroll 8
@joined      for (int part = first; part < last; part++)
@joined        sum += sums[part * $weights + i % $weights];
@joined      sums[$sums_elements + i] = sum;
@joined    }
@joined  }
  if (dw) { /* adds the remaining sums */
    GRID_LOOP($index, i, $weights) {
      real sum = R(0.0);
@joined      const real *const left = sums + $sums_elements;
@!joined      const real *const left = sums;
#pragma unroll 8
      for (int part = 0; part < $last_sums; part++) sum += left[part * $weights + i];
@accumulate      dw[i] += sum;
@!accumulate      dw[i] = $to_w(sum);
    }
  }
}
