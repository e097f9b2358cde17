/* The gradients of keys and values, of queries, or of all three: Note [attention] in
 * command/attention.h. */
__global__ void $name($arguments)
{
@random  const long long seed = state->seed, body = state->body;
  BLOCK_ROOM(real, tile_d, $d * $lanes);     /* keys or queries, [d, lane] */
  BLOCK_ROOM(real, tile_e, $e * $lanes);     /* values or dy, [e, lane] */
  BLOCK_ROOM(real, step_d, $rows * $d_room); /* of queries or keys, [row, d] */
  BLOCK_ROOM(real, step_e, $rows * $e_room); /* of dy or values, [row, e] */
  BLOCK_ROOM(real, weights, $rows * $lanes);
  BLOCK_ROOM(real, query_sums, $longest);
  BLOCK_ROOM(real, query_off, $longest);
@joint  BLOCK_ROOM(real, keys, $lanes * $d_room);  /* [lane, d] */
@joint  BLOCK_ROOM(real, sum_q, $rows * $d_room);
  BLOCK_LOOP($index, task, $units) {
@keys@queries    if (task < $key_units) { /* keys and values */
@keys    const $index unit = task;
@keys    const $index image = unit / ($key_split * $heads);
@keys    const $index head = unit / $key_split % $heads;
@keys    for (int first = (int)(unit % $key_split) * $lanes; first < $s; first += $key_split * $lanes) {
@keys      const int valid = $s - first < $lanes ? $s - first : $lanes;
@keys@causal      const int begin = first / $rows * $rows;
@keys@!causal      const int begin = 0;
@keys      const int last = $l;
@keys      const int width = TILE_WIDTH($lanes, valid);
@keys      TILE_SUMS(real, sum_d, $d_room, $lanes);
@keys      TILE_CLEAR(sum_d, $d_room, $lanes);
@keys      TILE_SUMS(real, sum_e, $e_room, $lanes);
@keys      TILE_CLEAR(sum_e, $e_room, $lanes);
@keys      BLOCK_MEETS; /* the unit before is done */
@keys      BLOCK_CELLS(lane, c, $lanes, $d) {
@keys        const $index key = first + (lane < valid ? lane : valid - 1);
@keys        tile_d[c * $lanes + lane] = $from_k($k[$k_at + key * $k_row + c]) * $scale;
@keys      }
@keys      BLOCK_CELLS(lane, c, $lanes, $e) {
@keys        const $index key = first + (lane < valid ? lane : valid - 1);
@keys        tile_e[c * $lanes + lane] = $from_v($v[$v_at + key * $v_row + c]);
@keys      }
@keys@joint      BLOCK_CELLS(lane, c, valid, $d_room)
@keys@joint        keys[lane * $d_room + c] = c < $d ? $from_k($k[$k_at + ($index)(first + lane) * $k_row + c]) * $scale : R(0.0);
@keys      for (int from = begin; from < last; from += $rows) {
@keys        const int count = last - from < $rows ? last - from : $rows;
@keys        BLOCK_MEETS;
@keys        BLOCK_CELLS(row, c, $rows, $d_room)
@keys          step_d[row * $d_room + c] = row < count && c < $d ? $from_q($q[$q_at + ($index)(from + row) * $q_row + c]) : R(0.0);
@keys        BLOCK_CELLS(row, c, $rows, $e_room)
@keys          step_e[row * $e_room + c] = row < count && c < $e ? $from_dy($dy[$dy_at + ($index)(from + row) * $dy_row + c]) : R(0.0);
@keys        BLOCK_EACH(row, count) {
@keys          query_sums[row] = $sums[(image * $l + from + row) * $heads + head];
@keys          query_off[row] = $off[(image * $l + from + row) * $heads + head];
@keys        }
@keys        BLOCK_MEETS;
@keys        TILE_SUMS(real, score, $rows, $lanes);
@keys        TILE_SUMS(real, slope, $rows, $lanes);
@keys        TILE_CLEAR(score, $rows, $lanes);
@keys        TILE_CLEAR(slope, $rows, $lanes);
@keys        tile_product($rows, count, $lanes, width, $d, score, step_d, $d_room, 1, tile_d);
@keys        tile_product($rows, count, $lanes, width, $e, slope, step_e, $e_room, 1, tile_e);
@keys        TILE_EACH(row, lane, at, $rows, count, $lanes, width, {
@keys          const int query UNUSED = from + row, key UNUSED = first + (lane < valid ? lane : valid - 1);
@keys          real value = score[at];
@keys@causal          value = key > query ? -ampc_inf() : value;
@keys@allowed          value = $mask[$mask_at + $mask_place] ? value : -ampc_inf();
@keys@added          value += $from_mask($mask[$mask_at + $mask_place]);
@keys          const real weight = ampc_exp(value - query_sums[row]);
@keys@random          const real drawn = ampc_uniform(seed, body, $stream, ((image * $heads + head) * (long long)$l + query) * $s + key);
@keys@random          const real share = drawn >= $p ? 1 / (1 - $p) : R(0.0);
@keys@random          slope[at] *= share;
@keys@random          weights[row * $lanes + lane] = weight * share;
@keys@!random          weights[row * $lanes + lane] = weight;
@keys          score[at] = weight;
@keys        })
@keys        BLOCK_MEETS;
@keys        tile_product($e_room, $e, $lanes, width, count, sum_e, step_e, 1, $e_room, weights);
@keys        BLOCK_MEETS;
@keys        TILE_EACH(row, lane, at, $rows, count, $lanes, width, {
@keys          weights[row * $lanes + lane] = score[at] * (slope[at] - query_off[row]);
@keys        })
@keys        BLOCK_MEETS;
@keys        tile_product($d_room, $d, $lanes, width, count, sum_d, step_d, 1, $d_room, weights);
@keys@joint        BLOCK_CELLS(row, c, $rows, $d_room)
@keys@joint          sum_q[row * $d_room + c] = first > 0 && row < count && c < $d ? $dq[((image * $l + from + row) * $heads + head) * $d + c] : R(0.0);
@keys@joint        tile_product($rows, count, $d_room, $d_room, valid, sum_q, weights, $lanes, 1, keys);
@keys@joint        BLOCK_CELLS(row, c, count, $d)
@keys@joint          $dq[((image * $l + from + row) * $heads + head) * $d + c] = sum_q[row * $d_room + c];
@keys      }
@keys@dk      TILE_EACH(row, lane, at, $d_room, $d, $lanes, width, {
@keys@dk        const real result = sum_d[at] * $scale;
@keys@dk        if (lane < valid) $dk[((image * $s + first + lane) * $heads + head) * $d + row] = $result;
@keys@dk      })
@keys@dv      TILE_EACH(row, lane, at, $e_room, $e, $lanes, width, {
@keys@dv        const real result = sum_e[at];
@keys@dv        if (lane < valid) $dv[((image * $s + first + lane) * $heads + head) * $e + row] = $result;
@keys@dv      })
@keys    }
@keys@queries    } else { /* queries */
@queries@keys    const $index unit = task - $key_units;
@queries@!keys    const $index unit = task;
@queries    const $index image = unit / ($query_split * $heads);
@queries    const $index head = unit / $query_split % $heads;
@queries    const int first = (int)(unit % $query_split) * $lanes;
@queries    const int valid = $l - first < $lanes ? $l - first : $lanes;
@queries@causal    const int last = first + valid < $s ? first + valid : $s;
@queries@!causal    const int last = $s;
@queries    const int width = TILE_WIDTH($lanes, valid);
@queries    TILE_SUMS(real, sum_d, $d_room, $lanes);
@queries    TILE_CLEAR(sum_d, $d_room, $lanes);
@queries    BLOCK_MEETS; /* the unit before is done */
@queries    BLOCK_CELLS(lane, c, $lanes, $d) {
@queries      const $index query = first + (lane < valid ? lane : valid - 1);
@queries      tile_d[c * $lanes + lane] = $from_q($q[$q_at + query * $q_row + c]);
@queries    }
@queries    BLOCK_CELLS(lane, c, $lanes, $e) {
@queries      const $index query = first + (lane < valid ? lane : valid - 1);
@queries      tile_e[c * $lanes + lane] = $from_dy($dy[$dy_at + query * $dy_row + c]);
@queries    }
@queries    BLOCK_EACH(lane, $lanes) {
@queries      const $index query = (image * $l + first + (lane < valid ? lane : valid - 1)) * $heads + head;
@queries      query_sums[lane] = $sums[query];
@queries      query_off[lane] = $off[query];
@queries    }
@queries    for (int from = 0; from < last; from += $rows) {
@queries      const int count = last - from < $rows ? last - from : $rows;
@queries      BLOCK_MEETS;
@queries      BLOCK_CELLS(row, c, $rows, $d_room)
@queries        step_d[row * $d_room + c] = row < count && c < $d ? $from_k($k[$k_at + ($index)(from + row) * $k_row + c]) * $scale : R(0.0);
@queries      BLOCK_CELLS(row, c, $rows, $e_room)
@queries        step_e[row * $e_room + c] = row < count && c < $e ? $from_v($v[$v_at + ($index)(from + row) * $v_row + c]) : R(0.0);
@queries      BLOCK_MEETS;
@queries      TILE_SUMS(real, score, $rows, $lanes);
@queries      TILE_SUMS(real, slope, $rows, $lanes);
@queries      TILE_CLEAR(score, $rows, $lanes);
@queries      TILE_CLEAR(slope, $rows, $lanes);
@queries      tile_product($rows, count, $lanes, width, $d, score, step_d, $d_room, 1, tile_d);
@queries      tile_product($rows, count, $lanes, width, $e, slope, step_e, $e_room, 1, tile_e);
@queries      TILE_EACH(row, lane, at, $rows, count, $lanes, width, {
@queries        const int query UNUSED = first + (lane < valid ? lane : valid - 1), key UNUSED = from + row;
@queries        real value = score[at];
@queries@causal        value = key > query ? -ampc_inf() : value;
@queries@allowed        value = $mask[$mask_at + $mask_place] ? value : -ampc_inf();
@queries@added        value += $from_mask($mask[$mask_at + $mask_place]);
@queries        const real weight = ampc_exp(value - query_sums[lane]);
@queries@random        const real drawn = ampc_uniform(seed, body, $stream, ((image * $heads + head) * (long long)$l + query) * $s + key);
@queries@random        const real share = drawn >= $p ? 1 / (1 - $p) : R(0.0);
@queries@random        slope[at] *= share;
@queries        weights[row * $lanes + lane] = weight * (slope[at] - query_off[lane]);
@queries      })
@queries      BLOCK_MEETS;
@queries      tile_product($d_room, $d, $lanes, width, count, sum_d, step_d, 1, $d_room, weights);
@queries    }
@queries    TILE_EACH(row, lane, at, $d_room, $d, $lanes, width, {
@queries      const real result = sum_d[at];
@queries      if (lane < valid) $dq[((image * $l + first + lane) * $heads + head) * $d + row] = $result;
@queries    })
@keys@queries    }
  }
}
