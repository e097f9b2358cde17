/* Stores rows of x in a buffer, from row `position` on; rows beyond its end are left out. @!placed: x
 * is the whole buffer. A trial run, which marks the state, stores nothing. */
__global__ void $name($arguments)
{
@placed  const long long first = $position;
  const int stores = !state->bad_loss;
  GRID_LOOP($index, i, $count) {
@placed    const long long row = first + i / $inner % $rows;
@placed    const long long at = i / ($inner * $rows) * $inner * $size + row * $inner + i % $inner;
@placed    if (row < $size && stores) buffer[at] = $x;
@!placed    if (stores) buffer[i] = $x;
  }
}
