/* Attention on tensor cores: Note [tensor cores] in command/attention.h. A block of four warps has
 * a tile of queries and walks the keys that they may attend to. A lane has elements of 2 * $tiles
 * queries. Scores are in units of log(2), so that a weight is a power of 2. */
__global__ void $name($arguments)
{
@random  const long long seed = state->seed, body = state->body;
  TENSOR_ROOM($type, own, $lanes, $d_room);
  TENSOR_ROOM($type, keys, $rows, $d_room);
@values  TENSOR_ROOM($type, values, $rows, $e_room);
  const int unit = (int)blockIdx.x;
  const $index image = unit / ($kv_heads * $query_split);
  const $index kv_head = unit / $query_split % $kv_heads, head = kv_head * $group;
@grouped  /* row r of all tiles is query r / $group of head `head + r % $group` */
  const int first = (int)(unit % $query_split) * $lanes;
@whole  const int valid = $lanes;
@!whole  const int valid = $l * $group - first < $lanes ? $l * $group - first : $lanes;
  const int own_row = first + TENSOR_WARP * 16 * $tiles; /* the warp's first row */
@causal  const int reached = (first + valid - 1) / $group + 1;
@causal  const int last = reached < $s ? reached : $s;
@!causal  const int last = $s;
  float most[2 * $tiles], total[2 * $tiles];
  TENSOR_FILL(most, 2 * $tiles, -ampc_inf());
  TENSOR_FILL(total, 2 * $tiles, 0);
@values  float sum[$tiles * $e_room / 2];
@values  TENSOR_FILL(sum, $tiles * $e_room / 2, 0);
  TENSOR_BRING($type, own, $lanes, $d_room, $vector_q, r, c, valid, $d, r,
@!grouped               $q[$q_at + ($index)(first + r) * $q_row + c])
@grouped               $q[$q_at + ($index)((first + r) / $group) * $q_row
@grouped                   + (first + r) % $group * $q_head + c])
  TENSOR_PART($type, next_k, $rows, $d_room, $vector_k);
@values  TENSOR_PART($type, next_v, $rows, $e_room, $vector_v);
  int next = 0; /* the next step is loaded while a step is used */
  $lines load
  for (int from = 0; from < last; from += $rows) {
    BLOCK_MEETS; /* all warps have used the previous step */
    TENSOR_STORE(keys, next_k, $rows, $d_room, $vector_k, r, TENSOR_COLUMN(r));
@values    TENSOR_STORE(values, next_v, $rows, $e_room, $vector_v, r, TENSOR_COLUMN(r));
    BLOCK_MEETS; /* the step is stored */
    next = from + $rows;
    $lines load
@causal    if (from > (own_row + 16 * $tiles - 1) / $group) continue; /* for this warp */
    float score[$tiles * $rows / 2];
    tensor_inner(score, own, keys, $tiles, $rows, $d_room, $is_bf16);
#pragma unroll
    for (int j = 0; j < 2 * $tiles; j++) {
      const int row UNUSED = own_row + j * 8 + TENSOR_LANE / 4;
      const int query UNUSED = row / $group;
      float peak = most[j];
#pragma unroll
      for (int i = 0; i < $rows / 4; i++) {
        const int key UNUSED = from + i / 4 * 16 + TENSOR_LANE % 4 * 4 + i % 4;
        float *const at = score + TENSOR_AT($rows, j / 2, i / 2, j % 2, i % 2);
        float value = *at * $scale2;
        $lines masks
        *at = value;
        peak = fmaxf(peak, value);
      }
      peak = tensor_quad_max(peak);
      const float base = ampc_finite_or_zero(peak), factor = tensor_exp2(most[j] - base);
      most[j] = peak;
      total[j] *= factor;
@values#pragma unroll
@values      for (int i = 0; i < $e_room / 4; i++)
@values        sum[TENSOR_AT($e_room, j / 2, i / 2, j % 2, i % 2)] *= factor;
#pragma unroll
      for (int i = 0; i < $rows / 4; i += 4) {
        float *const at = score + TENSOR_AT($rows, j / 2, i / 2, j % 2, 0);
@random        const int key = from + i * 4 + TENSOR_LANE % 4 * 4;
@random        const ampc_words drawn = tensor_drawn(
@random            seed, body, $stream,
@random            ((image * $heads + head) * ($pair)$l + query) * $s
@random@grouped          + row % $group * ($pair)($l * $s)
@random          + key$of_sample, $aligned);
#pragma unroll
        for (int c = 0; c < 4; c++) {
          const float weight = tensor_exp2(at[c / 2 * 4 + c % 2] - base);
          total[j] += weight;
@random          at[c / 2 * 4 + c % 2] = (unsigned)drawn.at[c] >= $least ? weight : 0;
@!random          at[c / 2 * 4 + c % 2] = weight;
        }
      }
    }
@values    tensor_outer(sum, score, values, $tiles, $rows, $e_room, $is_bf16);
  }
#pragma unroll
  for (int j = 0; j < 2 * $tiles; j++) {
    const int row = own_row + j * 8 + TENSOR_LANE / 4;
@!grouped    const $index at = (image * $l + row) * $heads + head;
@grouped    const $index at = (image * $l + row / $group) * $heads + head + row % $group;
    const float all = tensor_quad_sum(total[j]);
@values@random    const float factor = all == 0 ? 0 : 1 / (1 - $p) / all;
@values@!random    const float factor = all == 0 ? 0 : 1 / all;
    if (row >= first + valid) continue;
@values#pragma unroll
@values    for (int i = 0; i < $e_room / 8; i++) {
@values      const float *const pair = sum + TENSOR_AT($e_room, j / 2, i, j % 2, 0);
@values      const int c = i * 8 + TENSOR_LANE % 4 * 2;
@values      tensor_store($values + at * $e + c, pair[0] * factor, pair[1] * factor, $e - c,
@values                   $e % 2 == 0, $is_bf16);
@values    }
@logarithms    if (TENSOR_LANE % 4 == 0)
@logarithms      $logarithms[at] = all == 0 ? ampc_inf()
@logarithms          : ampc_finite_or_zero(most[j]) * R(0.693147180559945309) + ampc_log(all);
  }
}
// --- masks
@causal  value = key > query ? -ampc_inf() : value;
@ragged_s  value = key >= $s ? -ampc_inf() : value;
@ragged_l  value = query >= $l ? -ampc_inf() : value;
@masked@!grouped  const $index place = $mask_at + $mask_place;
@masked@grouped  const $index place = $mask_at + row % $group * $mask_head + $mask_place;
@guarded  if (value != -ampc_inf())
@allowed    value = $mask[place] ? value : -ampc_inf();
@added    value += $from_mask($mask[place]) * R(1.44269504088896341);
// --- load
@whole  if (next < last) {
@whole    const int count = $rows;
@!whole  {
@!whole    const int count = last - next;
    TENSOR_LOAD($type, next_k, $rows, $d_room, $vector_k, r, c, count, $d,
                $k[$k_at + ($index)(next + r) * $k_row + c])
@values    TENSOR_LOAD($type, next_v, $rows, $e_room, $vector_v, r, c, count, $e,
@values                $v[$v_at + ($index)(next + r) * $v_row + c])
  }
