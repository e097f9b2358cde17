/* Arranges images as columns: Note [columns on CUDA] in conv_columns.h. A row holds what the taps
 * of the filter read for one pixel of the result: tap after tap, each with all channels of a group.
 * For the gradient of images, a tap reads the pixel of dy whose forward sum has read this pixel by
 * the same tap. The kernel then also transposes the weights. */
__global__ void $name($arguments)
{
@vectors  GRID_ROW_VECTORS($vector, $index, cell, c, $cells, $channels) {
@!vectors  GRID_ROWS($index, cell, c, $cells, $channels) {
@!groups@taps    const $index pixel = cell / ($taps);
@!groups@!taps    const $index pixel = cell;
@groups    const $index pixel = cell / ($groups * ($taps));
@taps    const int tap = (int)(cell % ($taps));
    const $index image = pixel / ($out_pixels);
    const int at = (int)(pixel - image * ($out_pixels));
@deep    const int z = $seen_d;
    const int y = $seen_h;
    const int column = $seen_w;
@strided    /* only taps that fall on a pixel of dy read it */
@strided@deep    const int meets =
@strided@deep        z % $stride_d == 0 && y % $stride_h == 0 && column % $stride_w == 0;
@strided@flat    const int meets = y % $stride_h == 0 && column % $stride_w == 0;
@strided@deep    const int oz = z / $stride_d;
@strided    const int oy = y / $stride_h, ox = column / $stride_w;
@strided@deep    const int inside =
@strided@deep        meets && z >= 0 && oz < $d && y >= 0 && oy < $h && column >= 0 && ox < $w;
@strided@flat    const int inside = meets && y >= 0 && oy < $h && column >= 0 && ox < $w;
@!strided@deep    const int inside =
@!strided@deep        z >= 0 && z < $d && y >= 0 && y < $h && column >= 0 && column < $w;
@!strided@flat    const int inside = y >= 0 && y < $h && column >= 0 && column < $w;
@strided@deep    const $index seen = ((image * $d + oz) * $h + oy) * $w + ox;
@strided@flat    const $index seen = (image * $h + oy) * $w + ox;
@!strided@deep    const $index seen = ((image * $d + z) * $h + y) * $w + column;
@!strided@flat    const $index seen = (image * $h + y) * $w + column;
@groups    const $index from = seen * $c + cell / ($taps) % $groups * $channels + c;
@!groups    const $index from = seen * $c + c;
@vectors    VECTOR_ROOM($vector, $type, to, columns + cell * $channels + c);
@vectors    if (inside) {
@vectors      VECTOR_LOAD($vector, $type, pixels, x + from);
@vectors      VECTOR_EACH($vector, j) to[j] = pixels[j];
@vectors    } else {
@vectors      VECTOR_EACH($vector, j) to[j] = ($type)0;
@vectors    }
@vectors    VECTOR_STORE(columns + cell * $channels + c, to);
@!vectors    columns[cell * $channels + c] = inside ? x[from] : ($type)0;
  }
@back  /* transposes w from [group, k, tap, c] to [group, c, tap, k] */
@back  GRID_LOOP($index, i, $weights) {
@back    const $index filter = i / $channels / ($taps);
@back    const int k = (int)(i % $channels), tap = (int)(i / $channels % ($taps));
@back@groups    const int group = (int)(filter / $filters), c = (int)(filter % $filters);
@back@groups    turned[i] = w[((($index)group * $channels + k) * ($taps) + tap) * $filters + c];
@back@!groups    turned[i] = w[(($index)k * ($taps) + tap) * $filters + filter];
@back  }
}
