/* CUDA: products of small matrices of 16-bit numbers on tensor cores, from sm_80 on. A warp has a
 * piece of each operand. All of its lanes must reach each function together.
 *
 * Note [fragments]
 * A fragment is the part of a matrix that a lane has in registers. An instruction multiplies
 * [16, 16] by [16, 8] and adds to [16, 8] (PTX: mma.m16n8k16). A 32-bit register has two neighbours
 * of a row, or of a column if the operand is on the right. A lane has
 *   of the sums [16, 8]:  rows lane / 4 and lane / 4 + 8, columns lane % 4 * 2 and the next one:
 *     four floats, first the two of the upper row
 *   of the left operand [16, 16]:  the same places, then those 8 columns further
 *   of the right operand [16, 8]:  rows lane % 4 * 2 and the next one, then those 8 rows further, of
 *     column lane / 4
 * So the sums of two products [16, 8], rounded, are the left operand of another product. */

// --- LANE
#define LANE ((int)(threadIdx.x % 32))

// --- WARP
#define WARP ((int)(threadIdx.x / 32))

// --- TENSOR_PITCH
/* The distance between rows of a matrix in shared memory, in elements. Eight rows that follow each
 * other then lie in different banks. */
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
/* Loads four matrices [8, 8]. Lane i gives the address of row i % 8 of matrix i / 8. It gets of
 * each matrix the elements lane % 4 * 2 and the next one of row lane / 4. */
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
