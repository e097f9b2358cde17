/* Stores rows of x in a buffer, from row `position` on; rows beyond its end are left out. @!placed: x
 * is the whole buffer. A trial run, which marks the state, stores nothing. */
__global__ void $name($arguments)
{
@placed  const long long first = $position;
  const int stores = !state->bad_loss;
  GRID_LOOP($index, i, $count) {
@placed    const long long row = first + i / $inner % $rows;
@placed@!blocks    const long long at = (i / ($inner * $rows) * $size + row) * $inner + i % $inner;
@placed@blocks    const long long block = i / ($inner * $rows) * $blocks + row / $block;
@placed@blocks    const long long at = (block * $inner + i % $inner) * $block + row % $block;
@placed    if (row < $size && stores) buffer[at] = $x;
@!placed    if (stores) buffer[i] = $x;
  }
}
