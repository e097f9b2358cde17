/* Stores rows of x in a buffer, from row `position` on; rows beyond its end are left out. @!placed: x
 * is the whole buffer. */
__global__ void $name($arguments)
{
@placed  const long long first = $position;
@placed  GRID_LOOP($index, i, $count) {
@placed    const long long row = first + i / $inner % $rows;
@placed    const long long at = i / ($inner * $rows) * $inner * $size + row * $inner + i % $inner;
@placed    if (row < $size) buffer[at] = $x;
@placed  }
@!placed  GRID_LOOP($index, i, $count) buffer[i] = $x;
}
