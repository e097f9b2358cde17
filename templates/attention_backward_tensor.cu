/* Computes the gradients of keys and values, of queries, or of all three on tensor cores: Note
 * [tensor cores] in command/attention.h. In section `keys` a block of four warps has a tile of keys
 * and values and walks the queries that may attend to them. In section `queries` it has a tile of
 * queries and walks the keys. A launch that computes all three has blocks of both kinds. A lane
 * has elements of 2 * $tiles rows. */
__global__ void $name($arguments)
{
@random  const long long seed = state->seed, body = state->body;
@random  const float share = 1 / (1 - $p);
  TENSOR_ROOM($type, own_d, $lanes, $d_room); /* keys or queries */
  TENSOR_ROOM($type, own_e, $lanes, $e_room); /* values or dy */
  TENSOR_ROOM($type, step_d, $rows, $d_room); /* queries or keys */
  TENSOR_ROOM($type, step_e, $rows, $e_room); /* dy or values */
@keys  BLOCK_ROOM(float, step_sums, $rows);
@keys  BLOCK_ROOM(float, step_off, $rows);
@keys@queries  if (blockIdx.x < $key_units) { /* keys and values */
@keys@queries    $lines keys
@keys@!queries  $lines keys
@keys@queries  } else { /* queries */
@keys@queries    $lines queries
@!keys@queries  $lines queries
@keys@queries  }
}
// --- keys
  const int unit = (int)blockIdx.x;
  const $index image = unit / ($kv_heads * $key_split);
  const $index kv_head = unit / $key_split % $kv_heads, head = kv_head * $group;
  const int first = (int)(unit % $key_split) * $lanes;
@whole  const int valid = $lanes;
@!whole  const int valid = $s - first < $lanes ? $s - first : $lanes;
  const int own_key UNUSED = first + TENSOR_WARP * 16 * $tiles; /* the warp's first key */
@causal  const int begin = first * $group / $rows * $rows;
@!causal  const int begin = 0;
@dk  float sum_k[$tiles * $d_room / 2];
@dk  TENSOR_FILL(sum_k, $tiles * $d_room / 2, 0);
@dv  float sum_v[$tiles * $e_room / 2];
@dv  TENSOR_FILL(sum_v, $tiles * $e_room / 2, 0);
  TENSOR_BRING($type, own_d, $lanes, $d_room, $vector_k, r, c, valid, $d, TENSOR_ROW($tiles, r),
               $k[$k_at + ($index)(first + r) * $k_row + c])
  TENSOR_BRING($type, own_e, $lanes, $e_room, $vector_v, r, c, valid, $e, TENSOR_ROW($tiles, r),
               $v[$v_at + ($index)(first + r) * $v_row + c])
@grouped  /* row r of all steps is query r / $group of head `head + r % $group` */
  TENSOR_PART($type, next_d, $rows, $d_room, $vector_q);
  TENSOR_PART($type, next_e, $rows, $e_room, $vector_dy);
  float next_sums = 0, next_off = 0;
  int next = begin; /* the next step is loaded while a step is used */
  $lines load_queries
  for (int from = begin; from < $l * $group; from += $rows) {
    BLOCK_MEETS; /* all warps have used the previous step */
    TENSOR_STORE(step_d, next_d, $rows, $d_room, $vector_q, r, r);
    TENSOR_STORE(step_e, next_e, $rows, $e_room, $vector_dy, r, r);
    if (threadIdx.x < $rows) {
      step_sums[threadIdx.x] = next_sums;
      step_off[threadIdx.x] = next_off;
    }
    BLOCK_MEETS; /* the step is stored */
    next = from + $rows;
    $lines load_queries
@causal    if ((from + $rows - 1) / $group < own_key) continue; /* for this warp */
    float score[$tiles * $rows / 2], slope[$tiles * $rows / 2];
    tensor_inner(score, own_d, step_d, $tiles, $rows, $d_room, $is_bf16);
    tensor_inner(slope, own_e, step_e, $tiles, $rows, $e_room, $is_bf16);
#pragma unroll
    for (int i = 0; i < $rows / 4; i++) {
      const int r = i / 2 * 8 + TENSOR_LANE % 4 * 2 + i % 2;
      const int key_at = own_key + TENSOR_LANE / 4 * 2 * $tiles;
      const int row UNUSED = from + r, query UNUSED = row / $group;
      const float less = step_sums[r], off = step_off[r];
@random      const ampc_words drawn = tensor_drawn(
@random          seed, body, $stream,
@random          ((image * $heads + head) * ($pair)$l + query) * $s
@random@grouped            + row % $group * ($pair)($l * $s)
@random            + key_at$of_sample, $aligned_keys);
#pragma unroll
      for (int j = 0; j < 2 * $tiles; j++) {
        const int key UNUSED = key_at + j;
        const int at = TENSOR_AT($rows, j / 2, i / 2, j % 2, i % 2);
@random        const int kept = (unsigned)drawn.at[j] >= $least;
        $lines weight
        slope[at] = weight * (slope[at] - off);
@random        score[at] = kept ? weight * share : 0;
@!random        score[at] = weight;
      }
    }
@dv    tensor_outer(sum_v, score, step_e, $tiles, $rows, $e_room, $is_bf16);
@dk    tensor_outer(sum_k, slope, step_d, $tiles, $rows, $d_room, $is_bf16);
  }
#pragma unroll
  for (int j = 0; j < 2 * $tiles; j++) {
    const int key = own_key + TENSOR_LANE / 4 * 2 * $tiles + j;
    const $index at = (image * $s + key) * $kv_heads + kv_head;
    if (key >= $s) continue;
@dk#pragma unroll
@dk    for (int i = 0; i < $d_room / 8; i++) {
@dk      const float *const pair = sum_k + TENSOR_AT($d_room, j / 2, i, j % 2, 0);
@dk      const int c = i * 8 + TENSOR_LANE % 4 * 2;
@dk      tensor_store($dk + at * $d + c, pair[0] * $scale, pair[1] * $scale, $d - c, $d % 2 == 0,
@dk                   $is_bf16);
@dk    }
@dv#pragma unroll
@dv    for (int i = 0; i < $e_room / 8; i++) {
@dv      const float *const pair = sum_v + TENSOR_AT($e_room, j / 2, i, j % 2, 0);
@dv      const int c = i * 8 + TENSOR_LANE % 4 * 2;
@dv      tensor_store($dv + at * $e + c, pair[0], pair[1], $e - c, $e % 2 == 0, $is_bf16);
@dv    }
  }
// --- queries
@keys  const int unit = (int)blockIdx.x - $key_units;
@!keys  const int unit = (int)blockIdx.x;
  const $index image = unit / ($kv_heads * $query_split);
  const $index kv_head = unit / $query_split % $kv_heads, head = kv_head * $group;
@grouped  /* row r of all tiles is query r / $group of head `head + r % $group` */
  const int first = (int)(unit % $query_split) * $lanes;
@whole  const int valid = $lanes;
@!whole  const int valid = $l * $group - first < $lanes ? $l * $group - first : $lanes;
  const int own_row = first + TENSOR_WARP * 16 * $tiles; /* the warp's first row */
@causal  const int reached = (first + valid - 1) / $group + 1, last = reached < $s ? reached : $s;
@!causal  const int last = $s;
  float sum_q[$tiles * $d_room / 2], less_of[2 * $tiles], off_of[2 * $tiles];
  TENSOR_FILL(sum_q, $tiles * $d_room / 2, 0);
  TENSOR_BRING($type, own_d, $lanes, $d_room, $vector_q, r, c, valid, $d, r,
@!grouped               $q[$q_at + ($index)(first + r) * $q_row + c])
@grouped               $q[$q_at + ($index)((first + r) / $group) * $q_row
@grouped                   + (first + r) % $group * $q_head + c])
  TENSOR_BRING($type, own_e, $lanes, $e_room, $vector_dy, r, c, valid, $e, r,
@!grouped               $dy[$dy_at + ($index)(first + r) * $dy_row + c])
@grouped               $dy[$dy_at + ($index)((first + r) / $group) * $dy_row
@grouped                   + (first + r) % $group * $dy_head + c])
#pragma unroll
  for (int j = 0; j < 2 * $tiles; j++) {
    const int row = own_row + j * 8 + TENSOR_LANE / 4;
    const int r = row < first + valid ? row : first + valid - 1;
@!grouped    const $index at = (image * $l + r) * $heads + head;
@grouped    const $index at = (image * $l + r / $group) * $heads + head + r % $group;
    less_of[j] = $sums[at] * R(1.44269504088896341);
    off_of[j] = $off[at];
  }
  TENSOR_PART($type, next_d, $rows, $d_room, $vector_k);
  TENSOR_PART($type, next_e, $rows, $e_room, $vector_v);
  int next = 0; /* the next step is loaded while a step is used */
  $lines load_keys
  for (int from = 0; from < last; from += $rows) {
    BLOCK_MEETS; /* all warps have used the previous step */
    TENSOR_STORE(step_d, next_d, $rows, $d_room, $vector_k, r, TENSOR_COLUMN(r));
    TENSOR_STORE(step_e, next_e, $rows, $e_room, $vector_v, r, TENSOR_COLUMN(r));
    BLOCK_MEETS; /* the step is stored */
    next = from + $rows;
    $lines load_keys
@causal    if (from > (own_row + 16 * $tiles - 1) / $group) continue; /* for this warp */
    float score[$tiles * $rows / 2], slope[$tiles * $rows / 2];
    tensor_inner(score, own_d, step_d, $tiles, $rows, $d_room, $is_bf16);
    tensor_inner(slope, own_e, step_e, $tiles, $rows, $e_room, $is_bf16);
#pragma unroll
    for (int j = 0; j < 2 * $tiles; j++) {
      const int row UNUSED = own_row + j * 8 + TENSOR_LANE / 4, query UNUSED = row / $group;
      const float less = less_of[j], off = off_of[j];
#pragma unroll
      for (int i = 0; i < $rows / 4; i += 4) {
        const int key_at UNUSED = from + i * 4 + TENSOR_LANE % 4 * 4;
@random        const ampc_words drawn = tensor_drawn(
@random            seed, body, $stream,
@random            ((image * $heads + head) * ($pair)$l + query) * $s
@random@grouped            + row % $group * ($pair)($l * $s)
@random            + key_at$of_sample, $aligned);
#pragma unroll
        for (int c = 0; c < 4; c++) {
          const int key UNUSED = key_at + c;
          const int at = TENSOR_AT($rows, j / 2, i / 2 + c / 2, j % 2, c % 2);
@random          const int kept = (unsigned)drawn.at[c] >= $least;
          $lines weight
          slope[at] = weight * (slope[at] - off);
        }
      }
    }
    tensor_outer(sum_q, slope, step_d, $tiles, $rows, $d_room, $is_bf16);
  }
#pragma unroll
  for (int j = 0; j < 2 * $tiles; j++) {
    const int row = own_row + j * 8 + TENSOR_LANE / 4;
@!grouped    const $index at = (image * $l + row) * $heads + head;
@grouped    const $index at = (image * $l + row / $group) * $heads + head + row % $group;
    if (row >= first + valid) continue;
#pragma unroll
    for (int i = 0; i < $d_room / 8; i++) {
      const float *const pair = sum_q + TENSOR_AT($d_room, j / 2, i, j % 2, 0);
      const int c = i * 8 + TENSOR_LANE % 4 * 2;
      tensor_store($dq + at * $d + c, pair[0] * $scale, pair[1] * $scale, $d - c, $d % 2 == 0,
                   $is_bf16);
    }
  }
// --- weight
  float value = ampc_fma(score[at], $scale2, -less);
  $lines masks
  const float weight = tensor_exp2(value);
@random  slope[at] = kept ? slope[at] * share : 0;
// --- masks
@causal  value = key > query ? -ampc_inf() : value;
@ragged_s  value = key >= $s ? -ampc_inf() : value;
@ragged_l  value = query >= $l ? -ampc_inf() : value;
@masked@!grouped  const $index place = $mask_at + $mask_place;
@masked@grouped  const $index place = $mask_at + row % $group * $mask_head + $mask_place;
@guarded  if (value != -ampc_inf())
@allowed    value = $mask[place] ? value : -ampc_inf();
@added    value += $from_mask($mask[place]) * R(1.44269504088896341);
// --- load_queries
@whole  if (next < $l * $group) {
@whole    const int count = $rows;
@!whole  {
@!whole    const int count = $l * $group - next;
    TENSOR_LOAD($type, next_d, $rows, $d_room, $vector_q, r, c, count, $d,
@!grouped                $q[$q_at + ($index)(next + r) * $q_row + c])
@grouped                $q[$q_at + ($index)((next + r) / $group) * $q_row
@grouped                    + (next + r) % $group * $q_head + c])
    TENSOR_LOAD($type, next_e, $rows, $e_room, $vector_dy, r, c, count, $e,
@!grouped                $dy[$dy_at + ($index)(next + r) * $dy_row + c])
@grouped                $dy[$dy_at + ($index)((next + r) / $group) * $dy_row
@grouped                    + (next + r) % $group * $dy_head + c])
    next_sums = ampc_inf();
    if (threadIdx.x < $rows && (int)threadIdx.x < count) {
      const int row = next + (int)threadIdx.x;
@!grouped      const $index at = (image * $l + row) * $heads + head;
@grouped      const $index at = (image * $l + row / $group) * $heads + head + row % $group;
      next_sums = $sums[at] * R(1.44269504088896341);
      next_off = $off[at];
    }
  }
// --- load_keys
@whole  if (next < last) {
@whole    const int count = $rows;
@!whole  {
@!whole    const int count = last - next;
    TENSOR_LOAD($type, next_d, $rows, $d_room, $vector_k, r, c, count, $d,
                $k[$k_at + ($index)(next + r) * $k_row + c])
    TENSOR_LOAD($type, next_e, $rows, $e_room, $vector_v, r, c, count, $e,
                $v[$v_at + ($index)(next + r) * $v_row + c])
  }
