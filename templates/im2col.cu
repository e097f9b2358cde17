/* The columns of images, Note [columns on CUDA] in conv_columns.h: element channel * taps + tap of a
 * row is what that tap of the filter sees of the channel at that pixel of the result. */
__global__ void $name(const $type *__restrict__ x, $type *__restrict__ columns)
{
  GRID_LOOP($index, at, $count) {
    const $index row = at / $depth;
    const int e = (int)(at - row * $depth);
    const int channel = e / ($taps), tap = e - channel * ($taps);
    const $index image = row / ($out_pixels);
    const int pixel = (int)(row - image * ($out_pixels));
@deep    const int z = pixel / ($oh * $ow) * $stride_d - $pad_d + tap / ($kh * $kw) * $dil_d;
@deep    const int y = pixel / $ow % $oh * $stride_h - $pad_h + tap / $kw % $kh * $dil_h;
@flat    const int y = pixel / $ow * $stride_h - $pad_h + tap / $kw * $dil_h;
    const int column = pixel % $ow * $stride_w - $pad_w + tap % $kw * $dil_w;
@deep    const int seen = z >= 0 && z < $d && y >= 0 && y < $h;
@deep    const int inside = seen && column >= 0 && column < $w;
@flat    const int inside = y >= 0 && y < $h && column >= 0 && column < $w;
@deep    columns[at] = inside ? x[(((image * $d + z) * $h + y) * $w + column) * $c + channel] : ($type)0;
@flat    columns[at] = inside ? x[((image * $h + y) * $w + column) * $c + channel] : ($type)0;
  }
}
