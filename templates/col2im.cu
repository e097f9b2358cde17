/* The gradient of images from that of their columns, Note [columns on CUDA] in conv_columns.h: of
 * each pixel the sum over the taps that see it, in their order. */
__global__ void $name(const real *__restrict__ columns, $type *__restrict__ x)
{
  GRID_LOOP($index, at, $count) {
    const $index pixel = at / $c;
    const int channel = (int)(at - pixel * $c);
    const $index image = pixel / ($h * $w);
    const int in_image = (int)(pixel - image * ($h * $w));
    const int y = in_image / $w + $pad0, column = in_image % $w + $pad1;
    real result = R(0.0);
    for (int i = 0; i < $kh; i++) {
      const int above = y - i * $dil0, oy = above / $stride0;
      if (above < 0 || above % $stride0 || oy >= $oh) continue;
      for (int j = 0; j < $kw; j++) {
        const int before = column - j * $dil1, ox = before / $stride1;
        if (before < 0 || before % $stride1 || ox >= $ow) continue;
        const $index row = (image * $oh + oy) * $ow + ox;
        result += columns[row * $depth + (channel * $kh + i) * $kw + j];
      }
    }
    x[at] = $result;
  }
}
