/* Records an element of an index that is outside [0, $rows), for the host to report: the first one
 * of a run. */
__global__ void $name($arguments)
{
  ROW_LOOP(256, int, row, 1) {
    ROW_PART(long long, first_part, $count);
    ROW_REDUCE(1, 256, $index, c, $count, {
      VECTOR_EACH(1, j) {
        const int there = index_at[c + j] >= 0 && index_at[c + j] < $rows;
        ROW_PUT(first_part) = ampc_min_int(ROW_PUT(first_part), there ? $count : c + j);
      }
    });
    const long long first = row_min_int(first_part, 256);
    ROW_ONCE {
      if (first < $count && !state->outside.check) {
        state->outside.check = 1 + $check;
        state->outside.at = first;
        state->outside.value = index_at[first];
        state->outside.step = state->step + 1;
      }
    }
  }
}
