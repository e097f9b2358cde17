/* The columns of images, Note [columns on CUDA] in conv_columns.h: element (c kh + i) kw + j of a
 * row is channel c of what tap (i, j) of the filter sees at that pixel. */
__global__ void $name(const $type *__restrict__ x, $type *__restrict__ columns)
{
  GRID_LOOP($index, at, $count) {
    const $index row = at / $depth;
    const int e = (int)(at - row * $depth);
    const int channel = e / ($kh * $kw), tap = e - channel * ($kh * $kw);
    const $index image = row / ($oh * $ow);
    const int pixel = (int)(row - image * ($oh * $ow));
    const int y = pixel / $ow * $stride0 - $pad0 + tap / $kw * $dil0;
    const int column = pixel % $ow * $stride1 - $pad1 + tap % $kw * $dil1;
    const int inside = y >= 0 && y < $h && column >= 0 && column < $w;
    columns[at] = inside ? x[((image * $h + y) * $w + column) * $c + channel] : ($type)0;
  }
}
