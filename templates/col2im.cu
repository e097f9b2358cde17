/* The gradient of images from that of their columns, Note [columns on CUDA] in conv_columns.h: of
 * each pixel the sum over the taps that see it, in their order. */
__global__ void $name(const real *__restrict__ columns, $type *__restrict__ x)
{
  GRID_LOOP($index, at, $count) {
    const $index pixel = at / $c;
    const int channel = (int)(at - pixel * $c);
    const $index image = pixel / ($in_pixels);
    const int in_image = (int)(pixel - image * ($in_pixels));
@deep    const int z = in_image / ($h * $w) + $pad_d, y = in_image / $w % $h + $pad_h;
@deep    const int column = in_image % $w + $pad_w;
@flat    const int y = in_image / $w + $pad_h, column = in_image % $w + $pad_w;
    real result = R(0.0);
@deep    for (int t = 0; t < $kd * $kh; t++) {
@deep      const int over = z - t / $kh * $dil_d, oz = over / $stride_d;
@deep      const int above = y - t % $kh * $dil_h, oy = above / $stride_h;
@deep      if (over < 0 || over % $stride_d || oz >= $od) continue;
@flat    for (int i = 0; i < $kh; i++) {
@flat      const int above = y - i * $dil_h, oy = above / $stride_h;
      if (above < 0 || above % $stride_h || oy >= $oh) continue;
      for (int j = 0; j < $kw; j++) {
        const int before = column - j * $dil_w, ox = before / $stride_w;
        if (before < 0 || before % $stride_w || ox >= $ow) continue;
@deep        const $index row = ((image * $od + oz) * $oh + oy) * $ow + ox;
@deep        result += columns[row * $depth + (channel * ($kd * $kh) + t) * $kw + j];
@flat        const $index row = (image * $oh + oy) * $ow + ox;
@flat        result += columns[row * $depth + (channel * $kh + i) * $kw + j];
      }
    }
    x[at] = $result;
  }
}
