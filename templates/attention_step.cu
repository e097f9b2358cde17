/* Attention of a decoder's step: one query for each head, at a position among the keys. A block has
 * the queries of all heads that share keys, and walks the keys in steps. Queries are the rows of a
 * tile and keys its lanes, so no lane is without work. Each number is computed in the order of
 * attention.cu: the bits are the same. */
__global__ void $name($arguments)
{
  BLOCK_LOOP($index, unit, $units) {
    const $index image = unit / $kv_heads, kv_head = unit % $kv_heads;
    const int moved = (int)$position[0], last = moved + 1 < $s ? moved + 1 : $s;
    BLOCK_ROOM(real, queries, $rows * $d);
    BLOCK_ROOM(real, step, $lanes * $room); /* keys: [d, lane]; values: [lane, e] */
    BLOCK_ROOM(real, weights, $rows * $lanes);
    BLOCK_ROOM(real, most, $rows);
    BLOCK_ROOM(real, peak, $rows);
    BLOCK_ROOM(real, factor, $rows);
    BLOCK_ROOM(real, total, $rows);
    TILE_SUMS(real, sum, $rows, $e_room);
    TILE_CLEAR(sum, $rows, $e_room);
    BLOCK_MEETS; /* all threads have finished the previous unit */
    BLOCK_CELLS(row, c, $rows, $d) {
      const $index head UNUSED = kv_head * $group + (row < $group ? row : $group - 1);
      queries[row * $d + c] = $from_q($q[$q_at + c]);
    }
    BLOCK_CELLS(row, lane, $rows, $lanes) weights[row * $lanes + lane] = R(0.0);
    BLOCK_EACH(row, $rows) {
      most[row] = -ampc_inf();
      total[row] = R(0.0);
    }
    for (int from = 0; from < last; from += $lanes) {
      const int count = last - from < $lanes ? last - from : $lanes;
      BLOCK_MEETS;
      BLOCK_CELLS(c, lane, $d, $lanes)
@blocks        step[c * $lanes + lane] = $from_k($k[$k_at + ($index)from * $k_row + $k_lane + $k_c]) * $scale;
@!blocks        step[c * $lanes + lane] =
@!blocks            lane < count ? $from_k($k[$k_at + ($index)from * $k_row + $k_lane + $k_c]) * $scale : R(0.0);
      BLOCK_MEETS;
      TILE_SUMS(real, score, $rows, $lanes);
      TILE_CLEAR(score, $rows, $lanes);
      tile_product($rows, $group, $lanes, $lanes, $d, score, queries, $d, 1, step);
      TILE_EACH(row, lane, at, $rows, $group, $lanes, count, {
@masked        const $index head UNUSED = kv_head * $group + row;
@masked        const int query UNUSED = 0;
@masked        const int key UNUSED = from + lane;
        real value = score[at];
@allowed        value = $mask[$mask_at + $mask_place] ? value : -ampc_inf();
@added        value += $from_mask($mask[$mask_at + $mask_place]);
        weights[row * $lanes + lane] = value;
      })
      BLOCK_MEETS;
      BLOCK_EACH(row, $group) {
        factor[row] = most[row];
        for (int lane = 0; lane < count; lane++)
          most[row] = ampc_max(weights[row * $lanes + lane], most[row]);
        peak[row] = ampc_finite_or_zero(most[row]);
        factor[row] = ampc_exp(factor[row] - peak[row]);
        total[row] *= factor[row];
      }
      BLOCK_CELLS(lane, c, $lanes, $e_room)
        step[lane * $e_room + c] = lane < count && c < $e
            ? $from_v($v[$v_at + ($index)(from + lane) * $v_row + c]) : R(0.0);
      BLOCK_MEETS;
      TILE_EACH(row, lane, at, $rows, $group, $lanes, count, {
        weights[row * $lanes + lane] = ampc_exp(weights[row * $lanes + lane] - peak[row]);
      })
      BLOCK_MEETS;
      BLOCK_EACH(row, $group)
        for (int lane = 0; lane < count; lane++) total[row] += weights[row * $lanes + lane];
      TILE_EACH(row, lane, at, $rows, $group, $e_room, $e, { sum[at] *= factor[row]; })
      tile_product($rows, $group, $e_room, $e_room, count, sum, weights, $lanes, 1, step);
    }
    BLOCK_MEETS;
    TILE_EACH(row, lane, at, $rows, $group, $e_room, $e, {
      const real result = total[row] == R(0.0) ? R(0.0) : sum[at] / total[row];
      $values[(image * $heads + kv_head * $group + row) * $e + lane] = $result;
    })
  }
}
