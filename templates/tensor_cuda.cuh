/* CUDA: products of small matrices of 16-bit numbers on tensor cores, from sm_80 on. A warp has a
 * piece of each operand. All 32 lanes of a warp must call each function together.
 *
 * Note [fragments]
 * A fragment is the part of a matrix that a lane has in registers. The instruction mma.m16n8k16
 * computes sums[16, 8] += a[16, 16] b[16, 8]. A register of 32 bits has two adjacent 16-bit
 * elements: of a row of a, or of a column of b. A lane has
 *   of the sums:  row lane / 4, columns lane % 4 * 2 and the next one; then the same columns of row
 *     lane / 4 + 8: four floats
 *   of a:  the same places, then the same places 8 columns to the right: four registers
 *   of b:  rows lane % 4 * 2 and the next one of column lane / 4, then those 8 rows further down:
 *     two registers
 * So two sums [16, 8] of adjacent columns, rounded to 16 bits, are the operand a of another
 * product.
 *
 * A block walks a matrix in steps: a step is the rows that it has in shared memory at a time. */

// --- TENSOR_LANE
#define TENSOR_LANE ((int)(threadIdx.x % 32))

// --- TENSOR_WARP
#define TENSOR_WARP ((int)(threadIdx.x / 32))

// --- TENSOR_PITCH
/* Elements from one row of a matrix in shared memory to the next. The same 16 bytes of eight
 * consecutive rows lie in different banks. */
#define TENSOR_PITCH(columns) ((columns) + 8)

// --- TENSOR_ROOM
/* Declares a matrix of 16-bit numbers that a block shares; `columns` is a multiple of 16. */
#define TENSOR_ROOM(T, name, rows, columns)                                                        \
  __shared__ __align__(16) T name[(rows) * TENSOR_PITCH(columns)]

// --- tensor_address
DEVICE unsigned tensor_address(const unsigned short *at)
{
  return (unsigned)__cvta_generic_to_shared(at);
}

// --- tensor_rows
/* Loads four matrices [8, 8]. Lane i passes the address of row i % 8 of matrix i / 8. Of each
 * matrix, lane i receives elements i % 4 * 2 and the next one of row i / 4. */
DEVICE void tensor_rows(unsigned *out, const unsigned short *row)
{
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(tensor_address(row))
               : "memory");
}

// --- tensor_columns
/* Loads as tensor_rows does, but each matrix transposed. */
DEVICE void tensor_columns(unsigned *out, const unsigned short *row)
{
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(tensor_address(row))
               : "memory");
}

// --- tensor_add
/* Computes sum += a b: Note [fragments]. is_bf16: the operands are bf16, else f16. */
DEVICE void tensor_add(float *sum, const unsigned *a, unsigned b0, unsigned b1, int is_bf16)
{
  if (is_bf16)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// --- tensor_pair
/* Rounds two numbers to 16 bits, to nearest, ties to even; `low` goes into the lower half. */
DEVICE unsigned tensor_pair(float low, float high, int is_bf16)
{
  unsigned pair;
  if (is_bf16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// --- tensor_exp2
/* Returns 2^x with a relative error of at most 2^-22. */
DEVICE float tensor_exp2(float x)
{
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// --- tensor_store
/* Stores two neighbours, of which the row has `left` from here on. even: `left` and the address of
 * a pair are even. */
DEVICE void tensor_store(unsigned short *to, float low, float high, int left, int even, int is_bf16)
{
  const unsigned pair = tensor_pair(low, high, is_bf16);
  if (even && left > 0) *(unsigned *)to = pair;
  if (!even && left > 0) to[0] = (unsigned short)pair;
  if (!even && left > 1) to[1] = (unsigned short)(pair >> 16);
}

// --- tensor_quad_max
/* Returns the maximum over the four lanes that have the same rows. Ignores NaN. */
DEVICE float tensor_quad_max(float x)
{
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// --- tensor_quad_sum
DEVICE float tensor_quad_sum(float x)
{
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// --- TENSOR_FILL
#define TENSOR_FILL(name, n, value)                                                                \
  _Pragma("unroll") for (int name##_at = 0; name##_at < (n); name##_at++) name[name##_at] = (value)

// --- TENSOR_TURNS
/* How many vectors of n elements each thread of a block loads of a matrix. */
#define TENSOR_TURNS(rows, columns, n) (((rows) * (columns) / (n) + 127) / 128)

// --- TENSOR_PART
/* Declares a thread's vectors of a matrix. */
#define TENSOR_PART(T, name, rows, columns, n)                                                     \
  __align__(16) T name[TENSOR_TURNS(rows, columns, n)][n]

// --- TENSOR_VECTORS
/* Loops over the thread's vectors: `part[turn]` has the elements of row r from column c on. */
#define TENSOR_VECTORS(turn, r, c, rows, columns, n)                                               \
  _Pragma("unroll") for (int turn = 0, r = 0, c = 0;                                               \
                           turn < TENSOR_TURNS(rows, columns, n) &&                                \
                           (r = (turn * 128 + (int)threadIdx.x) / ((columns) / (n)),               \
                           c = (turn * 128 + (int)threadIdx.x) % ((columns) / (n)) * (n),          \
                           (rows) * (columns) / (n) % 128 == 0 || r < (rows));                     \
                           turn++)

// --- TENSOR_LOAD
/* Loads a matrix of 16-bit numbers into the registers `part`. `from` is an expression: the element
 * in row r and column c. Rows from `valid` on and columns from `width` on become 0. A thread loads
 * n adjacent elements at once. */
#define TENSOR_LOAD(T, part, rows, columns, n, r, c, valid, width, from)                           \
  TENSOR_VECTORS(part##_turn, r, c, rows, columns, n)                                              \
  {                                                                                                \
    for (int part##_i = 0; part##_i < (n); part##_i++) part[part##_turn][part##_i] = 0;            \
    if (r < (valid) && c < (width)) vector_copy(part[part##_turn], &(from), 2 * (n));              \
  }

// --- TENSOR_STORE
/* Stores the matrix in a TENSOR_ROOM, with row r at place `to`. */
#define TENSOR_STORE(name, part, rows, columns, n, r, to)                                          \
  TENSOR_VECTORS(part##_turn, r, part##_c, rows, columns, n)                                       \
  vector_copy(&name[(to) * TENSOR_PITCH(columns) + part##_c], part[part##_turn], 2 * (n))

// --- TENSOR_BRING
/* Loads a matrix and stores it, vector by vector. */
#define TENSOR_BRING(T, name, rows, columns, n, r, c, valid, width, to, from)                      \
  _Pragma("unroll 4") for (int r##_turn = 0; r##_turn < TENSOR_TURNS(rows, columns, n);            \
                           r##_turn++) {                                                           \
    const int r##_at = r##_turn * 128 + (int)threadIdx.x;                                          \
    const int r = r##_at / ((columns) / (n)), c = r##_at % ((columns) / (n)) * (n);                \
    if ((rows) * (columns) / (n) % 128 && r >= (rows)) break;                                      \
    __align__(16) T name##_part[n] = {0};                                                          \
    if (r < (valid) && c < (width)) vector_copy(name##_part, &(from), 2 * (n));                    \
    vector_copy(&name[(to) * TENSOR_PITCH(columns) + c], name##_part, 2 * (n));                    \
  }

// --- TENSOR_AT
/* The place of a number among a lane's sums of a product that has `columns` columns: row h * 8 +
 * lane / 4 of tile m, column n * 8 + lane % 4 * 2 + c. */
#define TENSOR_AT(columns, m, n, h, c) (((m) * (columns) / 8 + (n)) * 4 + (h) * 2 + (c))

// --- TENSOR_ROW
/* The place of row r of a tile in shared memory. A lane computes the rows h * 8 + lane / 4 of its
 * warp, for h < 2 * tiles. These places have adjacent rows of the tile, from (lane / 4) * 2 * tiles
 * on. */
#define TENSOR_ROW(tiles, r)                                                                       \
  ((r) / (16 * (tiles)) * 16 * (tiles) + (r) % (2 * (tiles)) * 8 +                                 \
   (r) % (16 * (tiles)) / (2 * (tiles)))

// --- TENSOR_COLUMN
/* The place of row r of a step in shared memory. tensor_inner makes a column of each row. Each 16
 * rows are permuted, so that a lane computes four adjacent ones, lane % 4 * 4 + c for c < 4. Row c
 * of them is its column c % 2 of product c / 2. */
#define TENSOR_COLUMN(r) ((r) / 16 * 16 + (r) % 4 / 2 * 8 + (r) % 16 / 4 * 2 + (r) % 2)

// --- tensor_inner
/* Sets x = own step^T, the dot products of the warp's rows of `own` with the rows of a step. A warp
 * has `tiles` times 16 rows, a step has `rows` rows; all rows have `columns` elements. */
DEVICE void tensor_inner(float *x, const unsigned short *own, const unsigned short *step, int tiles,
                         int rows, int columns, int is_bf16)
{
  const int pitch = TENSOR_PITCH(columns), lane = TENSOR_LANE;
  own += (TENSOR_WARP * tiles * 16 + lane % 16) * pitch + lane / 16 * 8;
  step += (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 8;
#pragma unroll
  for (int i = 0; i < tiles * rows / 2; i++) x[i] = 0;
#pragma unroll
  for (int k = 0; k < columns; k += 16) {
    unsigned a[2][4], b[4];
#pragma unroll
    for (int m = 0; m < tiles; m++) tensor_rows(a[m], own + m * 16 * pitch + k);
#pragma unroll
    for (int n = 0; n < rows / 16; n++) {
      tensor_rows(b, step + n * 16 * pitch + k);
#pragma unroll
      for (int m = 0; m < tiles; m++) {
        tensor_add(x + TENSOR_AT(rows, m, 2 * n, 0, 0), a[m], b[0], b[1], is_bf16);
        tensor_add(x + TENSOR_AT(rows, m, 2 * n + 1, 0, 0), a[m], b[2], b[3], is_bf16);
      }
    }
  }
}

// --- tensor_outer
/* Rounds x to 16 bits and adds a product: sum += x step. x has `rows` columns, as tensor_inner sets
 * them for the same step. */
DEVICE void tensor_outer(float *sum, const float *x, const unsigned short *step, int tiles,
                         int rows, int columns, int is_bf16)
{
  const int pitch = TENSOR_PITCH(columns), lane = TENSOR_LANE;
  step += lane % 16 * pitch + lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < rows / 16; k++) {
    unsigned a[2][4], b[4];
#pragma unroll
    for (int m = 0; m < tiles; m++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float *const at = x + TENSOR_AT(rows, m, 2 * k + i / 2, i % 2, 0);
        a[m][i] = tensor_pair(at[0], at[1], is_bf16);
      }
#pragma unroll
    for (int n = 0; n < columns / 16; n++) {
      tensor_columns(b, step + k * 16 * pitch + n * 16);
#pragma unroll
      for (int m = 0; m < tiles; m++) {
        tensor_add(sum + TENSOR_AT(columns, m, 2 * n, 0, 0), a[m], b[0], b[1], is_bf16);
        tensor_add(sum + TENSOR_AT(columns, m, 2 * n + 1, 0, 0), a[m], b[2], b[3], is_bf16);
      }
    }
  }
}

// --- tensor_drawn
/* Returns the random words of elements first to first + 3. aligned: `first` is a multiple of 4, so
 * one call of Philox makes all four. */
DEVICE ampc_words tensor_drawn(long long seed, long long body, unsigned stream, long long first,
                               int aligned)
{
  const ampc_words low = ampc_drawn(seed, body, stream, first >> 2);
  if (aligned || first % 4 == 0) return low;
  const ampc_words high = ampc_drawn(seed, body, stream, (first >> 2) + 1);
  const int one = first & 1, two = first & 2;
  const ampc_words half = {{two ? low.at[2] : low.at[0], two ? low.at[3] : low.at[1],
                            two ? high.at[0] : low.at[2], two ? high.at[1] : low.at[3]}};
  const philox_word last = two ? high.at[2] : high.at[0];
  const ampc_words out = {{one ? half.at[1] : half.at[0], one ? half.at[2] : half.at[1],
                           one ? half.at[3] : half.at[2], one ? last : half.at[3]}};
  return out;
}
