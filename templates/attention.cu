/* A block has a tile of queries and walks, in steps, all keys that they attend to: Note [attention]
 * in command/attention.h. The result of a query that attends to no key is 0, as in PyTorch. */
__global__ void $name($arguments)
{
@random  const long long seed = state->seed, body = state->body;
  BLOCK_LOOP($index, unit, $units) {
    const $index image = unit / ($query_split * $heads);
    const $index head = unit / $query_split % $heads, kv_head UNUSED = head / $group;
    const int first = (int)(unit % $query_split) * $lanes;
    const int valid = $l - first < $lanes ? $l - first : $lanes;
    const int width = TILE_WIDTH($lanes, valid);
@moved    const int moved = (int)$position[0];
@causal    const int last = first + valid$after < $s ? first + valid$after : $s;
@!causal    const int last = $s;
    BLOCK_ROOM(real, queries, $d * $lanes); /* [d, lane] */
    BLOCK_ROOM(real, step, $rows * $room);  /* a step of keys, then of values */
    BLOCK_ROOM(real, weights, $rows * $lanes);
    BLOCK_ROOM(real, most, $lanes);
    BLOCK_ROOM(real, peak, $lanes);
    BLOCK_ROOM(real, factor, $lanes);
    BLOCK_ROOM(real, total, $lanes);
@values    TILE_SUMS(real, sum, $e_room, $lanes);
@values    TILE_CLEAR(sum, $e_room, $lanes);
    BLOCK_MEETS; /* all threads have finished the previous unit */
    BLOCK_CELLS(lane, c, $lanes, $d) {
      const $index query = first + (lane < valid ? lane : valid - 1);
      queries[c * $lanes + lane] = $from_q($q[$q_at + query * $q_row + c]);
    }
    BLOCK_EACH(lane, $lanes) {
      most[lane] = -ampc_inf();
      total[lane] = R(0.0);
    }
    for (int from = 0; from < last; from += $rows) {
      const int count = last - from < $rows ? last - from : $rows;
      BLOCK_MEETS;
      BLOCK_CELLS(row, c, $rows, $d)
        step[row * $room + c] =
            row < count ? $from_k($k[$k_at + ($index)from * $k_row + $k_of_row + $k_c]) * $scale : R(0.0);
      BLOCK_MEETS;
      TILE_SUMS(real, score, $rows, $lanes);
      TILE_CLEAR(score, $rows, $lanes);
      tile_product($rows, count, $lanes, width, $d, score, step, $room, 1, queries);
      TILE_EACH(row, lane, at, $rows, count, $lanes, width, {
@placed        const int query UNUSED = first + (lane < valid ? lane : valid - 1);
@placed        const int key UNUSED = from + row;
        real value = score[at];
@causal        value = key > query$after ? -ampc_inf() : value;
@allowed        value = $mask[$mask_at + $mask_place] ? value : -ampc_inf();
@added        value += $from_mask($mask[$mask_at + $mask_place]);
        weights[row * $lanes + lane] = value;
      })
      BLOCK_MEETS;
      BLOCK_EACH(lane, width) factor[lane] = most[lane];
      tile_most(most, weights, count, $lanes, width);
      BLOCK_EACH(lane, width) {
        peak[lane] = ampc_finite_or_zero(most[lane]);
        factor[lane] = ampc_exp(factor[lane] - peak[lane]);
        total[lane] *= factor[lane];
      }
@values      BLOCK_CELLS(row, c, $rows, $e_room)
@values        step[row * $room + c] = row < count && c < $e
@values            ? $from_v($v[$v_at + ($index)(from + row) * $v_row + c]) : R(0.0);
      BLOCK_MEETS;
      TILE_EACH(row, lane, at, $rows, count, $lanes, width, {
        weights[row * $lanes + lane] = ampc_exp(weights[row * $lanes + lane] - peak[lane]);
      })
      BLOCK_MEETS;
      tile_add(total, weights, count, $lanes, width);
@values@random      BLOCK_MEETS;
@values@random      TILE_EACH(row, lane, at, $rows, count, $lanes, width, {
@values@random        const int query = first + (lane < valid ? lane : valid - 1);
@values@random        const real drawn = ampc_uniform(seed, body, $stream,
@values@random            ((image * $heads + head) * (long long)$l + query) * $s + (from + row)$of_sample);
@values@random        weights[row * $lanes + lane] *= drawn >= $p ? 1 / (1 - $p) : R(0.0);
@values@random      })
@values@random      BLOCK_MEETS;
@values      TILE_EACH(row, lane, at, $e_room, $e, $lanes, width, { sum[at] *= factor[lane]; })
@values      tile_product($e_room, $e, $lanes, width, count, sum, step, 1, $room, weights);
    }
    BLOCK_MEETS;
@values    TILE_EACH(row, lane, at, $e_room, $e, $lanes, width, {
@values      const real result = total[lane] == R(0.0) ? R(0.0) : sum[at] / total[lane];
@values      if (lane < valid)
@values        $values[((image * $l + first + lane) * $heads + head) * $e + row] = $result;
@values    })
@logarithms    BLOCK_EACH(lane, valid)
@logarithms      $logarithms[(image * $l + first + lane) * $heads + head] =
@logarithms          total[lane] == R(0.0) ? ampc_inf() : peak[lane] + ampc_log(total[lane]);
  }
}
