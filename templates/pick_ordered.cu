/* Returns the elements of each row at the indices in `order`. */
__global__ void $name($arguments)
{
  GRID_LOOP($index, at, $elements) {
    const $index i =
        (at / ($ordered * $inner) * $length + ($index)order_at[at]) * $inner + at % $inner;
@!integers    const real result = $x;
@integers    const long long result = $x;
    $out[at] = $result;
  }
}
