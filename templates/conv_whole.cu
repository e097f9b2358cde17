/* Computes a convolution with few channels per group, or the gradient of its images: Note [whole]
 * in conv_columns.h. A thread computes neighbouring channels of some pixels of the result. It sums
 * over the taps of the filter and over the channels of the group that a tap reads. For a gradient,
 * a tap reads the pixel of dy whose forward sum has read this pixel by the same tap. The gradient
 * of a depthwise convolution is unrolled by three taps. Four taps need 100 registers, so that only
 * two blocks fit on a multiprocessor, or they spill (EfficientNet-B0 on sm_100). */
__global__ void $name($arguments)
{
  GRID_ROW_VECTORS($vector, $index, cell, k, $rows, $row) {
@grouped    const $index first = cell / $groups * $each;
@grouped    const int group = (int)(cell % $groups);
@!grouped    const $index first = cell * $each;
    VECTOR_LOCAL($vector, real, sum[$each]);
    for (int p = 0; p < $each; p++) VECTOR_EACH($vector, j) sum[p][j] = R(0.0);
@depthwise@back#pragma unroll 3
@depthwise@!back#pragma unroll 4
@!depthwise#pragma unroll 4
    for (int tap = 0; tap < $taps; tap++) {
@!depthwise#pragma unroll 4
@!depthwise      for (int c = 0; c < $channels; c++) {
        VECTOR_LOCAL($vector, real, weight);
        VECTOR_EACH($vector, j)
          weight[j] = $from_w(w[
@depthwise              (k + j) * ($taps) + tap]);
@!back@grouped              ((group * $filters + k + j) * ($taps) + tap) * $channels + c]);
@!depthwise@!back@!grouped              ((k + j) * ($taps) + tap) * $channels + c]);
@back@grouped              ((group * $channels + c) * ($taps) + tap) * $filters + k + j]);
@!depthwise@back@!grouped              (c * ($taps) + tap) * $filters + k + j]);
#pragma unroll
        for (int p = 0; p < $each; p++) {
          const $index pixel = first + p;
          const $index image = pixel / ($out_pixels);
          const int at = (int)(pixel - image * ($out_pixels));
@deep          const int z = $seen_d;
          const int row = $seen_h;
          const int column = $seen_w;
@strided@deep          const int meets =
@strided@deep              z % $stride_d == 0 && row % $stride_h == 0 && column % $stride_w == 0;
@strided@flat          const int meets = row % $stride_h == 0 && column % $stride_w == 0;
@strided@deep          const int oz = z / $stride_d;
@strided          const int oy = row / $stride_h, ox = column / $stride_w;
@strided@deep          const int inside = meets && z >= 0 && oz < $d &&
@strided@deep              row >= 0 && oy < $h && column >= 0 && ox < $w;
@strided@flat          const int inside = meets && row >= 0 && oy < $h && column >= 0 && ox < $w;
@strided@deep          const $index seen = ((image * $d + oz) * $h + oy) * $w + ox;
@strided@flat          const $index seen = (image * $h + oy) * $w + ox;
@!strided@deep          const int inside =
@!strided@deep              z >= 0 && z < $d && row >= 0 && row < $h && column >= 0 && column < $w;
@!strided@flat          const int inside = row >= 0 && row < $h && column >= 0 && column < $w;
@!strided@deep          const $index seen = ((image * $d + z) * $h + row) * $w + column;
@!strided@flat          const $index seen = (image * $h + row) * $w + column;
          const $index from = inside ? seen : 0; /* any valid address: the value is not used */
@depthwise@vectors          VECTOR_LOAD($vector, $x_type, channels, x + from * $c + k);
@depthwise          VECTOR_EACH($vector, j)
@depthwise            sum[p][j] = ampc_fma(inside
@depthwise@vectors                ? $from_x(channels[j])
@depthwise@!vectors                ? $from_x(x[from * $c + k + j])
@depthwise                : R(0.0), weight[j], sum[p][j]);
@grouped          const real seen_there = $from_x(x[from * $c + group * $channels + c]);
@!depthwise@!grouped          const real seen_there = $from_x(x[from * $c + c]);
@!depthwise          const real value = inside ? seen_there : R(0.0);
@!depthwise          VECTOR_EACH($vector, j) sum[p][j] = ampc_fma(value, weight[j], sum[p][j]);
        }
@!depthwise      }
    }
#pragma unroll
    for (int p = 0; p < $each; p++) {
@grouped      const $index to = (first + p) * $k + group * $filters + k;
@!grouped      const $index to = (first + p) * $k + k;
@biased@grouped      VECTOR_EACH($vector, j)
@biased@grouped        sum[p][j] += $from_bias(bias[group * $filters + k + j]);
@biased@!grouped      VECTOR_EACH($vector, j) sum[p][j] += $from_bias(bias[k + j]);
@vectors      VECTOR_ROOM($vector, $y_type, result, y + to);
@vectors      VECTOR_EACH($vector, j) result[j] = $to_y(sum[p][j]);
@vectors      VECTOR_STORE(y + to, result);
@!vectors      VECTOR_EACH($vector, j) y[to + j] = $to_y(sum[p][j]);
    }
  }
}
