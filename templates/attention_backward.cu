/* Computes the gradients of keys and values, of queries, or of all three: Note [attention] in
 * command/attention.h. Section `keys` has a tile of keys and values and walks the queries that
 * attend to them. Section `queries` has a tile of queries and walks the keys. Both use `products`
 * for the scores of a step and the gradients of their weights, and `score` for the score of one
 * query and key. */
__global__ void $name($arguments)
{
@random  const long long seed = state->seed, body = state->body;
  BLOCK_ROOM(real, tile_d, $d * $lanes);     /* keys or queries, [d, lane] */
  BLOCK_ROOM(real, tile_e, $e * $lanes);     /* values or dy, [e, lane] */
  BLOCK_ROOM(real, step_d, $rows * $d_room); /* queries or keys, [row, d] */
  BLOCK_ROOM(real, step_e, $rows * $e_room); /* dy or values, [row, e] */
  BLOCK_ROOM(real, weights, $rows * $lanes);
  BLOCK_ROOM(real, query_sums, $longest);
  BLOCK_ROOM(real, query_off, $longest);
@joint  BLOCK_ROOM(real, keys, $lanes * $d_room);  /* [lane, d] */
@joint  BLOCK_ROOM(real, sum_q, $rows * $d_room);
  BLOCK_LOOP($index, task, $units) {
@keys@queries    if (task < $key_units) { /* keys and values */
@keys    $lines keys
@keys@queries    } else { /* queries */
@queries    $lines queries
@keys@queries    }
  }
}
// --- keys
  const $index unit = task;
  const $index image = unit / ($key_split * $kv_heads);
@grouped  const $index kv_head UNUSED = unit / $key_split % $kv_heads;
@!grouped  const $index head = unit / $key_split % $heads, kv_head UNUSED = head;
  for (int first = (int)(unit % $key_split) * $lanes; first < $s; first += $key_split * $lanes) {
    const int valid = $s - first < $lanes ? $s - first : $lanes;
@causal    const int begin = first / $rows * $rows;
@!causal    const int begin = 0;
    const int last = $l;
    const int width = TILE_WIDTH($lanes, valid);
    TILE_SUMS(real, sum_d, $d_room, $lanes);
    TILE_CLEAR(sum_d, $d_room, $lanes);
    TILE_SUMS(real, sum_e, $e_room, $lanes);
    TILE_CLEAR(sum_e, $e_room, $lanes);
    BLOCK_MEETS; /* all threads have finished the previous unit */
    BLOCK_CELLS(lane, c, $lanes, $d) {
      const $index key = first + (lane < valid ? lane : valid - 1);
      tile_d[c * $lanes + lane] = $from_k($k[$k_at + key * $k_row + c]) * $scale;
    }
    BLOCK_CELLS(lane, c, $lanes, $e) {
      const $index key = first + (lane < valid ? lane : valid - 1);
      tile_e[c * $lanes + lane] = $from_v($v[$v_at + key * $v_row + c]);
    }
@joint    BLOCK_CELLS(lane, c, valid, $d_room)
@joint      keys[lane * $d_room + c] =
@joint          c < $d ? $from_k($k[$k_at + ($index)(first + lane) * $k_row + c]) * $scale : R(0.0);
@grouped    for ($index head = kv_head * $group; head < (kv_head + 1) * $group; head++)
    for (int from = begin; from < last; from += $rows) {
      const int count = last - from < $rows ? last - from : $rows;
      BLOCK_MEETS;
      BLOCK_CELLS(row, c, $rows, $d_room)
        step_d[row * $d_room + c] =
            row < count && c < $d ? $from_q($q[$q_at + ($index)(from + row) * $q_row + c]) : R(0.0);
      BLOCK_CELLS(row, c, $rows, $e_room)
        step_e[row * $e_room + c] = row < count && c < $e
            ? $from_dy($dy[$dy_at + ($index)(from + row) * $dy_row + c]) : R(0.0);
      BLOCK_EACH(row, count) {
        query_sums[row] = $sums[(image * $l + from + row) * $heads + head];
        query_off[row] = $off[(image * $l + from + row) * $heads + head];
      }
      BLOCK_MEETS;
      $lines products
      TILE_EACH(row, lane, at, $rows, count, $lanes, width, {
        const int query UNUSED = from + row, key UNUSED = first + (lane < valid ? lane : valid - 1);
        $lines score
        const real weight = ampc_exp(value - query_sums[row]);
@random        const real drawn = ampc_uniform(seed, body, $stream,
@random            ((image * $heads + head) * (long long)$l + query) * $s + key$of_sample);
@random        const real share = drawn >= $p ? 1 / (1 - $p) : R(0.0);
@random        slope[at] *= share;
@random        weights[row * $lanes + lane] = weight * share;
@!random        weights[row * $lanes + lane] = weight;
        score[at] = weight;
      })
      BLOCK_MEETS;
      tile_product($e_room, $e, $lanes, width, count, sum_e, step_e, 1, $e_room, weights);
      BLOCK_MEETS;
      TILE_EACH(row, lane, at, $rows, count, $lanes, width, {
        weights[row * $lanes + lane] = score[at] * (slope[at] - query_off[row]);
      })
      BLOCK_MEETS;
      tile_product($d_room, $d, $lanes, width, count, sum_d, step_d, 1, $d_room, weights);
@joint      BLOCK_CELLS(row, c, $rows, $d_room)
@joint        sum_q[row * $d_room + c] = first > 0 && row < count && c < $d
@joint            ? $dq[((image * $l + from + row) * $heads + head) * $d + c] : R(0.0);
@joint      tile_product($rows, count, $d_room, $d_room, valid, sum_q, weights, $lanes, 1, keys);
@joint      BLOCK_CELLS(row, c, count, $d)
@joint        $dq[((image * $l + from + row) * $heads + head) * $d + c] = sum_q[row * $d_room + c];
    }
@dk    TILE_EACH(row, lane, at, $d_room, $d, $lanes, width, {
@dk      const real result = sum_d[at] * $scale;
@dk      if (lane < valid) $dk[((image * $s + first + lane) * $kv_heads + kv_head) * $d + row] = $result;
@dk    })
@dv    TILE_EACH(row, lane, at, $e_room, $e, $lanes, width, {
@dv      const real result = sum_e[at];
@dv      if (lane < valid) $dv[((image * $s + first + lane) * $kv_heads + kv_head) * $e + row] = $result;
@dv    })
  }
// --- queries
@keys  const $index unit = task - $key_units;
@!keys  const $index unit = task;
  const $index image = unit / ($query_split * $heads);
  const $index head = unit / $query_split % $heads, kv_head UNUSED = head / $group;
  const int first = (int)(unit % $query_split) * $lanes;
  const int valid = $l - first < $lanes ? $l - first : $lanes;
@causal  const int last = first + valid < $s ? first + valid : $s;
@!causal  const int last = $s;
  const int width = TILE_WIDTH($lanes, valid);
  TILE_SUMS(real, sum_d, $d_room, $lanes);
  TILE_CLEAR(sum_d, $d_room, $lanes);
  BLOCK_MEETS; /* all threads have finished the previous unit */
  BLOCK_CELLS(lane, c, $lanes, $d) {
    const $index query = first + (lane < valid ? lane : valid - 1);
    tile_d[c * $lanes + lane] = $from_q($q[$q_at + query * $q_row + c]);
  }
  BLOCK_CELLS(lane, c, $lanes, $e) {
    const $index query = first + (lane < valid ? lane : valid - 1);
    tile_e[c * $lanes + lane] = $from_dy($dy[$dy_at + query * $dy_row + c]);
  }
  BLOCK_EACH(lane, $lanes) {
    const $index query = (image * $l + first + (lane < valid ? lane : valid - 1)) * $heads + head;
    query_sums[lane] = $sums[query];
    query_off[lane] = $off[query];
  }
  for (int from = 0; from < last; from += $rows) {
    const int count = last - from < $rows ? last - from : $rows;
    BLOCK_MEETS;
    BLOCK_CELLS(row, c, $rows, $d_room)
      step_d[row * $d_room + c] = row < count && c < $d
          ? $from_k($k[$k_at + ($index)(from + row) * $k_row + c]) * $scale : R(0.0);
    BLOCK_CELLS(row, c, $rows, $e_room)
      step_e[row * $e_room + c] =
          row < count && c < $e ? $from_v($v[$v_at + ($index)(from + row) * $v_row + c]) : R(0.0);
    BLOCK_MEETS;
    $lines products
    TILE_EACH(row, lane, at, $rows, count, $lanes, width, {
      const int query UNUSED = first + (lane < valid ? lane : valid - 1), key UNUSED = from + row;
      $lines score
      const real weight = ampc_exp(value - query_sums[lane]);
@random      const real drawn = ampc_uniform(seed, body, $stream,
@random          ((image * $heads + head) * (long long)$l + query) * $s + key$of_sample);
@random      const real share = drawn >= $p ? 1 / (1 - $p) : R(0.0);
@random      slope[at] *= share;
      weights[row * $lanes + lane] = weight * (slope[at] - query_off[lane]);
    })
    BLOCK_MEETS;
    tile_product($d_room, $d, $lanes, width, count, sum_d, step_d, 1, $d_room, weights);
  }
  TILE_EACH(row, lane, at, $d_room, $d, $lanes, width, {
    const real result = sum_d[at];
    if (lane < valid) $dq[((image * $l + first + lane) * $heads + head) * $d + row] = $result;
  })
// --- products
  TILE_SUMS(real, score, $rows, $lanes);
  TILE_SUMS(real, slope, $rows, $lanes);
  TILE_CLEAR(score, $rows, $lanes);
  TILE_CLEAR(slope, $rows, $lanes);
  tile_product($rows, count, $lanes, width, $d, score, step_d, $d_room, 1, tile_d);
  tile_product($rows, count, $lanes, width, $e, slope, step_e, $e_room, 1, tile_e);
// --- score
  real value = score[at];
@causal  value = key > query ? -ampc_inf() : value;
@allowed  value = $mask[$mask_at + $mask_place] ? value : -ampc_inf();
@added  value += $from_mask($mask[$mask_at + $mask_place]);
