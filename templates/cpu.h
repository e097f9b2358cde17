/* CPU. A block has one thread, and each block of a launch takes one contiguous share of the work.
 * So kernels are plain loops that the compiler vectorises. The same kernel text runs on CUDA: this
 * file defines what differs between the CPU and CUDA. */
#define __global__ static
#define DEVICE     static inline

float fmaf(float, float, float);
float sqrtf(float);
float floorf(float);
float ceilf(float);
float rintf(float);
float fabsf(float);
float fmodf(float, float);
double fma(double, double, double);
double floor(double);

/* block_index: the block that this thread runs; block_count: the number of blocks */
static _Thread_local unsigned block_index, block_count;

// --- float_bits
DEVICE unsigned float_bits(float x)
{
  union {
    float number;
    unsigned bits;
  } u;
  u.number = x;
  return u.bits;
}

// --- bits_float
DEVICE float bits_float(unsigned bits)
{
  union {
    unsigned bits;
    float number;
  } u;
  u.bits = bits;
  return u.number;
}

// --- f16
/* 16-bit numbers are only stored, as their bits; all arithmetic is done in `real`. */
typedef unsigned short f16;

// --- bf16
typedef unsigned short bf16;

// --- from_f16
/* NaN becomes quiet, as in x86; its bits on CUDA are unspecified. */
DEVICE real from_f16(f16 h)
{
  unsigned sign = (unsigned)(h & 0x8000u) << 16;
  unsigned bits = (unsigned)(h & 0x7fffu) << 13;
  unsigned exponent = bits & 0x0f800000u;
  unsigned normal = bits + 0x38000000u;  /* the exponent bias of f32 is larger by 112 */
  unsigned special = bits + 0x70000000u; /* inf and NaN */
  special |= bits > 0x0f800000u ? 0x00400000u : 0u;
  unsigned tiny = float_bits(bits_float(bits + 0x38800000u) - bits_float(0x38800000u));
  unsigned magnitude = exponent == 0x0f800000u ? special : normal;
  magnitude = exponent == 0u ? tiny : magnitude;
  return (real)bits_float(magnitude | sign);
}

// --- to_f16
/* Rounds to nearest, ties to even. Values from 65520 on become inf; NaN becomes 0x7fff, as in
 * cvt.rn.f16.f32. */
DEVICE f16 to_f16(real value)
{
  unsigned x = float_bits((float)value);
  unsigned a = x & 0x7fffffffu;
  unsigned normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
  unsigned tiny = float_bits(bits_float(a) + 0.5f) - 0x3f000000u; /* an ulp of 0.5 is 2^-24 */
  unsigned h = a < 0x38800000u ? tiny : normal;
  h = a >= 0x477ff000u ? 0x7c00u : h;
  h |= (x >> 16) & 0x8000u;
  return (f16)(a > 0x7f800000u ? 0x7fffu : h);
}

// --- from_bf16
DEVICE real from_bf16(bf16 h)
{
  return (real)bits_float((unsigned)h << 16);
}

// --- to_bf16
/* Rounds to nearest, ties to even. NaN becomes 0x7fff, as in cvt.rn.bf16.f32. */
DEVICE bf16 to_bf16(real value)
{
  unsigned x = float_bits((float)value), nan = 0u - (value != value);
  x = (x & ~nan) | (nan & 0x7fff0000u); /* gcc does not vectorise some loops with a ? b : c here */
  return (bf16)((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

// --- to_rounded_bf16
/* Returns to_bf16(value) of a value that round_bf16 has returned. */
DEVICE bf16 to_rounded_bf16(real value)
{
  return (bf16)(float_bits((float)value) >> 16);
}

// --- int64_t
/* Declares functions and types that the text of an op of the job may use. */
#include <math.h>
#include <stdint.h>

// --- round_f16
/* Returns from_f16(to_f16(value)), in a form that gcc vectorises. `step` is 1.5 * 2^(e + 13), with
 * e the exponent of value, at least -14. Its ulp in f32 is the ulp of value in f16, so adding and
 * subtracting `step` rounds value. The factor 1.5 keeps the sum in the same binade if value is
 * negative. */
DEVICE real round_f16(real value)
{
  float x = (float)value;
  unsigned sign = float_bits(x) & 0x80000000u, exponent = float_bits(x) & 0x7f800000u;
  float step = bits_float((exponent > 0x38800000u ? exponent : 0x38800000u) + 0x06c00000u);
  unsigned bits = float_bits((x + step) - step) | sign; /* the sign of a zero */
  bits = (float_bits(x) & 0x7fffffffu) >= 0x477ff000u ? sign | 0x7f800000u : bits;
  return (real)bits_float(x != x ? 0x7fffe000u : bits);
}

// --- round_bf16
DEVICE real round_bf16(real x)
{
  return from_bf16(to_bf16(x));
}

// --- philox_word
/* A word of 32 bits in a 64-bit variable: vectors of 64-bit products then need no shuffles. */
typedef unsigned long long philox_word;

// --- block_share
/* Returns where the share of block k begins. Shares are whole cache lines, so two blocks never
 * share a line. */
DEVICE long long block_share(long long n, unsigned k)
{
  long long at = (n + 63) / 64 * k / block_count * 64;
  return at < n ? at : n;
}

// --- __gathers__
/* Stands before the name of a kernel that reads elements at computed places. gcc has vector
 * instructions for that, but uses them only on processors that it knows. */
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
#  define __gathers__ __attribute__((target("tune=haswell")))
#else
#  define __gathers__
#endif

// --- GRID_LOOP
/* Loops over each i of [0, n). */
#define GRID_LOOP(T, i, n)                                                                         \
  for (T i = (T)block_share(n, block_index), i##_end = (T)block_share(n, block_index + 1);         \
       i < i##_end; i++)

// --- GRID_ROWS
/* Loops over each r of [0, rows) and c of [0, columns). */
#define GRID_ROWS(T, r, c, rows, columns)                                                          \
  for (T r##_at = (T)block_share((long long)(rows) * (columns), block_index),                      \
         r##_end = (T)block_share((long long)(rows) * (columns), block_index + 1), r = 0;          \
       r##_at < r##_end && (r = r##_at / (columns), 1); r##_at = (r + 1) * (columns))              \
    for (T c = r##_at - r * (columns),                                                             \
           c##_end = r##_end - r * (columns) < (columns) ? r##_end - r * (columns) : (columns);    \
         c < c##_end; c++)

// --- VECTOR_LOAD
/* A vector is the elements that a thread processes at once: on CUDA n neighbours in registers, here
 * up to VECTOR_MOST elements in place, so that loops are long. name[j] is element j of the vector
 * at `from`. */
#define VECTOR_LOAD(n, T, name, from) T *const name = (T *)(from)

// --- VECTOR_ROOM
/* Declares name[j], the elements that VECTOR_STORE will store at `to`. */
#define VECTOR_ROOM(n, T, name, to) T *const name = (to)

// --- VECTOR_STORE
#define VECTOR_STORE(to, name) (void)(name)

// --- VECTOR_MOST
#define VECTOR_MOST 1024

// --- VECTOR_LOCAL
/* Declares name[j], local to the thread. */
#define VECTOR_LOCAL(n, T, name) T name[VECTOR_MOST]

// --- VECTOR_WIDTH
/* The number of elements of the vector. */
#define VECTOR_WIDTH(n) vector_width

// --- vector_f16
/* Note [wide vectors]: gcc 12 does not vectorise the processor's conversions of f16; without them a
 * conversion needs 13 to 16 instructions. So vectors of f16 are converted as a whole before and
 * after the loop over their elements, which have the type real. With and without these instructions
 * the bits are the same. */
#ifdef __AVX512F__
#  define VECTOR_F16 16
#elif defined __F16C__
#  define VECTOR_F16 8
#elif defined __aarch64__
#  define VECTOR_F16 4
#endif
#ifdef VECTOR_F16
typedef float vector_f16 __attribute__((vector_size(4 * VECTOR_F16), aligned(4), may_alias));
typedef int vector_f16_bits __attribute__((vector_size(4 * VECTOR_F16)));
typedef f16 vector_f16_stored __attribute__((vector_size(2 * VECTOR_F16), aligned(2), may_alias));
#  ifdef __aarch64__
#    define VECTOR_F16_WIDEN(to, from)  __asm__("fcvtl %0.4s, %1.4h" : "=w"(to) : "w"(from))
#    define VECTOR_F16_NARROW(to, from) __asm__("fcvtn %0.4h, %1.4s" : "=w"(to) : "w"(from))
#  else
#    define VECTOR_F16_WIDEN(to, from)  __asm__("vcvtph2ps %1, %0" : "=x"(to) : "m"(from))
#    define VECTOR_F16_NARROW(to, from) __asm__("vcvtps2ph $0, %1, %0" : "=m"(to) : "x"(from))
#  endif
#endif

// --- vector_widen_rest
static __attribute__((noinline)) void vector_widen_rest(real *to, const f16 *from, int n)
{
  for (int j = 0; j < n; j++) to[j] = from_f16(from[j]);
}

// --- vector_narrow_rest
static __attribute__((noinline)) void vector_narrow_rest(f16 *to, const real *from, int n)
{
  for (int j = 0; j < n; j++) to[j] = to_f16(from[j]);
}

// --- WIDE_LOAD
/* As VECTOR_LOAD, but name[j] is real: Note [wide vectors]. */
#define WIDE_LOAD(n, T, name, from)                                                                \
  real name[VECTOR_MOST];                                                                          \
  vector_widen(name, from, vector_width)
DEVICE void vector_widen(real *to, const f16 *from, int n)
{
  int j = 0;
#ifdef VECTOR_F16
  for (; j + VECTOR_F16 <= n; j += VECTOR_F16) {
    vector_f16 x;
    VECTOR_F16_WIDEN(x, *(const vector_f16_stored *)(from + j));
    *(vector_f16 *)(to + j) = x;
  }
#endif
  if (j < n) vector_widen_rest(to + j, from + j, n - j);
}

// --- WIDE_ROOM
/* As VECTOR_ROOM, but name[j] is real. */
#define WIDE_ROOM(n, T, name, to) real name[VECTOR_MOST]

// --- WIDE_STORE
#define WIDE_STORE(to, name) vector_narrow(to, name, vector_width)
DEVICE void vector_narrow(f16 *to, const real *from, int n)
{
  int j = 0;
#ifdef VECTOR_F16
  for (; j + VECTOR_F16 <= n; j += VECTOR_F16) {
    vector_f16 x = *(const vector_f16 *)(from + j);
    const vector_f16_bits nan = x != x;
    x = (vector_f16)(((vector_f16_bits)x & ~nan) | (nan & 0x7fffe000));
    VECTOR_F16_NARROW(*(vector_f16_stored *)(to + j), x);
  }
#endif
  if (j < n) vector_narrow_rest(to + j, from + j, n - j);
}

// --- VECTOR_EACH
/* Loops over each j of the vector. The loop is not unrolled: gcc would unroll the 16 elements of a
 * reduction before it vectorises, and then find nothing to vectorise. */
#define VECTOR_EACH(n, j) _Pragma("GCC unroll 1") for (int j = 0; j < vector_width; j++)

// --- EACH_TAP
/* Loops over each element k of a window, k in [0, n). */
#define EACH_TAP(k, n) for (int k = 0; k < (n); k++)

// --- GRID_VECTORS
/* Loops over vectors of elements [i, i + vector_width) of [0, count). */
#define GRID_VECTORS(n, T, i, count)                                                               \
  for (T i = (T)block_share(count, block_index), i##_end = (T)block_share(count, block_index + 1); \
       i < i##_end; i += VECTOR_MOST)                                                              \
    for (int vector_width = (int)(i##_end - i < VECTOR_MOST ? i##_end - i : VECTOR_MOST);          \
         vector_width; vector_width = 0)

// --- GRID_ROW_VECTORS
/* Loops over vectors of columns [c, c + vector_width) of [0, columns), in rows r of [0, rows). */
#define GRID_ROW_VECTORS(n, T, r, c, rows, columns)                                                \
  for (T r##_at = (T)block_share((long long)(rows) * (columns), block_index),                      \
         r##_end = (T)block_share((long long)(rows) * (columns), block_index + 1), r = 0;          \
       r##_at < r##_end && (r = r##_at / (columns), 1); r##_at = (r + 1) * (columns))              \
    for (T c = r##_at - r * (columns),                                                             \
           c##_end = r##_end - r * (columns) < (columns) ? r##_end - r * (columns) : (columns);    \
         c < c##_end; c += VECTOR_MOST)                                                            \
      for (int vector_width = (int)(c##_end - c < VECTOR_MOST ? c##_end - c : VECTOR_MOST);        \
           vector_width; vector_width = 0)

// --- EACH_VECTOR
#define EACH_VECTOR(n, T, i, count) GRID_VECTORS(n, T, i, count)

// --- EACH_ROW_VECTOR
#define EACH_ROW_VECTOR(n, T, r, c, rows, columns) GRID_ROW_VECTORS(n, T, r, c, rows, columns)

// --- GRID_ROWS_VECTORS
/* Loops as GRID_ROW_VECTORS; on CUDA over `k` rows at a time, over which EACH_OF_ROWS loops. */
#define GRID_ROWS_VECTORS(n, T, r, c, rows, columns, k) GRID_ROW_VECTORS(n, T, r, c, rows, columns)

// --- EACH_OF_ROWS
#define EACH_OF_ROWS(T, r, rows, k)

// --- TABLE
/* Declares constant numbers: TABLE(T, name) = { .. } */
#define TABLE(T, name) static const T name[]

// --- ampc_nf4
/* Returns the NF4 value of element i, whose code is in the upper half of the byte if i is even. A
 * table is 13 times as fast here as choices, which the processor cannot foresee. */
TABLE(real, nf4_table) = {
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
};

DEVICE real ampc_nf4(real pair, long long i)
{
  return nf4_table[(int)pair >> (4 - 4 * (int)(i & 1)) & 15];
}

// --- ONE_THREAD
/* Only one thread of the launch executes the statement. */
#define ONE_THREAD if (block_index == 0)

// --- FIRST_BLOCK
/* Only block 0 continues, whatever the grid is. */
#define FIRST_BLOCK                                                                                \
  if (block_index > 0) return;                                                                     \
  block_count = 1

// --- ALONE
/* A block executes the statement after it as if it were the only block of the launch. */
#define ALONE

// --- last_block
/* Each block counts its arrival in `arrived`. Returns 1 in the block that arrives last. That block
 * can read what all blocks have stored, and from here on it is the only block. */
DEVICE int last_block(unsigned *arrived)
{
  if (__atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL) != block_count) return 0;
  *arrived = 0;
  block_index = 0;
  block_count = 1;
  return 1;
}

// --- LAST_BLOCK
/* Only the block that arrives here last executes the code that follows. */
#define LAST_BLOCK(state)                                                                          \
  if (!last_block(&(state)->arrived)) return

// --- BLOCK_MEETS
/* Barrier: all threads of the block wait here; then each can read what the others have stored. */
#define BLOCK_MEETS (void)0

// --- ROW_LOOP
/* Loops over rows in [0, rows); all threads of a block work on one row. */
#define ROW_LOOP(threads, T, row, rows)                                                            \
  for (T row = (T)((long long)(rows)*block_index / block_count),                                   \
         row##_end = (T)((long long)(rows) * (block_index + 1) / block_count);                     \
       row < row##_end; row++)

// --- ROW_EACH
/* Loops over vectors of elements [c, c + vector_width) of the row [0, length). The body has no
 * reductions. */
#define ROW_EACH(n, threads, T, c, length, ...)                                                    \
  for (T c = 0; c < (length); c += VECTOR_MOST) {                                                  \
    const int vector_width = (int)((length)-c < VECTOR_MOST ? (length)-c : VECTOR_MOST);           \
    __VA_ARGS__                                                                                    \
  }

// --- ROW_SUMS
/* A scatter-add of rows: for n = 0 .. count - 1, in this order, to[c] += VALUE for all c of
 * [0, length). VALUE, the last argument, is an expression in i = from + c. `to` and `from` are
 * expressions in n; `to` points to row rows[n] of the result. length <= most, a literal. */
#define ROW_SUMS(most, threads, T, c, length, n, count, rows, to, i, from, ...)                    \
  for (int n = 0; n < (count); n++) {                                                              \
    real *const n##_to = (to);                                                                     \
    const T n##_from = (from);                                                                     \
    for (T c = 0; c < (length); c++) {                                                             \
      const T i = n##_from + c;                                                                    \
      n##_to[c] += __VA_ARGS__;                                                                    \
    }                                                                                              \
  }

// --- ROW_ONCE
/* Executes the statement in one thread of the row. */
#define ROW_ONCE

// --- ROW_REDUCE
/* Loops over vectors of elements [c, c + vector_width) of [0, length), with reductions. Note
 * [lanes]: element c + j is added to partial result j of 16, and a tree combines the 16. Vector
 * units of up to 16 lanes all give the same bits. Compilers can vectorise the loop although they
 * must not reorder a float sum. The body appears twice: for whole vectors of 16 and the rest. */
#define ROW_REDUCE(n, threads, T, c, length, ...)                                                  \
  do {                                                                                             \
    for (T c = 0; c + 16 <= (length); c += 16) {                                                   \
      const int vector_width = 16;                                                                 \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
    if ((length) % 16) {                                                                           \
      const T c = (length) / 16 * 16;                                                              \
      const int vector_width = (int)((length) % 16);                                               \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  } while (0)

// --- ROW_REDUCE_LONG
/* Loops as ROW_REDUCE, but in stretches of elements. After each stretch `ends` adds the partial
 * sums to totals and restarts them at 0: an addition to a long sum loses more bits. */
#define ROW_REDUCE_LONG(n, threads, T, c, length, ends, ...)                                       \
  do {                                                                                             \
    for (T c = 0; c + 16 <= (length);) {                                                           \
      for (int c##_end = 0; c##_end < 256 && c + 16 <= (length); c##_end++, c += 16) {             \
        const int vector_width = 16;                                                               \
        __VA_ARGS__                                                                                \
      }                                                                                            \
      ends                                                                                         \
    }                                                                                              \
    if ((length) % 16) {                                                                           \
      const T c = (length) / 16 * 16;                                                              \
      const int vector_width = (int)((length) % 16);                                               \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
    ends                                                                                           \
  } while (0)

// --- ROW_EACH_ODD
/* Rows whose length is no multiple of n differ from others only on CUDA. */
#define ROW_EACH_ODD(...) ROW_EACH(__VA_ARGS__)

// --- ROW_REDUCE_ODD
#define ROW_REDUCE_ODD(...) ROW_REDUCE(__VA_ARGS__)

// --- ROW_REDUCE_LONG_ODD
#define ROW_REDUCE_LONG_ODD(...) ROW_REDUCE_LONG(__VA_ARGS__)

// --- ROW_PART_LONG
/* As ROW_PART, but `name` has the sums of one stretch; `name`_sum has those of all stretches. */
#define ROW_PART_LONG(T, name, start)                                                              \
  T name[16], name##_sum[16];                                                                      \
  for (int lane = 0; lane < 16; lane++) name[lane] = name##_sum[lane] = (start)

// --- ROW_END
#define ROW_END(name)                                                                              \
  for (int lane = 0; lane < 16; lane++) {                                                          \
    name##_sum[lane] += name[lane];                                                                \
    name[lane] = 0;                                                                                \
  }

// --- ROW_PART
/* Declares the 16 partial results of a reduction with their initial value. ROW_PUT is the partial
 * result for element j of a vector. */
#define ROW_PART(T, name, start)                                                                   \
  T name[16];                                                                                      \
  for (int lane = 0; lane < 16; lane++) name[lane] = (start)

// --- ROW_PUT
#define ROW_PUT(name) name[j]

// --- GRID_CODES
/* Loops over code blocks of 256 elements in [0, count), which is a multiple of 256. Each is a
 * vector here, on CUDA that of a warp. ROW_CODES loops over those of a row, with reductions. */
#define GRID_CODES(T, i, count)                                                                    \
  for (T i = (T)block_share((count) / 4, block_index) * 4,                                         \
         i##_end = (T)block_share((count) / 4, block_index + 1) * 4;                               \
       i < i##_end; i += 256)                                                                      \
    for (int vector_width = 256; vector_width; vector_width = 0)

// --- ROW_CODES
#define ROW_CODES(threads, T, c, length, ...)                                                      \
  for (T c = 0; c < (length); c += 256) {                                                          \
    const int vector_width = 256;                                                                  \
    __VA_ARGS__                                                                                    \
  }

// --- ROW_PUT_CODE
/* ROW_PUT in ROW_CODES */
#define ROW_PUT_CODE(name) name[j % 16]

// --- row_most_key
/* Returns the largest key of all threads of a code block. */
DEVICE unsigned row_most_key(unsigned key)
{
  return key;
}

// --- CODES_ONCE
#define CODES_ONCE

// --- COUNTERS
/* Declares n counters of a block and sets them to 0. COUNT adds 1 to counter k for element j of a
 * vector. Each counter has 4 copies, so that an addition does not wait for the one before it. After
 * all counting, EACH_COUNTER loops over the counters and COUNTED(name, k) reads one. */
#define COUNTERS(name, n)                                                                          \
  unsigned name[4][n];                                                                             \
  for (int row = 0; row < 4; row++)                                                                \
    for (int k = 0; k < (n); k++) name[row][k] = 0
#define COUNT(name, j, k)  name[(j)&3][k]++
#define COUNTED(name, k)   (name[0][k] + name[1][k] + name[2][k] + name[3][k])
#define EACH_COUNTER(k, n) for (int k = 0; k < (n); k++)

// --- ROW_TREE
/* Defines a function that combines the 16 partial results of a row. */
#define ROW_TREE(T, name, JOIN)                                                                    \
  DEVICE T name(T *part, int threads)                                                              \
  {                                                                                                \
    (void)threads;                                                                                 \
    for (int i = 0; i < 8; i++) part[i] = JOIN(part[i], part[i + 8]);                              \
    for (int i = 0; i < 4; i++) part[i] = JOIN(part[i], part[i + 4]);                              \
    for (int i = 0; i < 2; i++) part[i] = JOIN(part[i], part[i + 2]);                              \
    return JOIN(part[0], part[1]);                                                                 \
  }

// --- ROW_SHARE
/* Declares the thread's share of the row: elements [first, end) of [0, length), here the whole
 * row. */
#define ROW_SHARE(threads, T, first, end, length) const T first = 0, end = (length)

// --- ROW_BEFORE
/* Defines a function that combines the partial results of the row's threads before this one. Here a
 * row has one thread, so it returns `start`. */
#define ROW_BEFORE(T, name, JOIN, start)                                                           \
  DEVICE T name(T part, int threads)                                                               \
  {                                                                                                \
    (void)part, (void)threads;                                                                     \
    return (start);                                                                                \
  }

// --- row_before_line
/* Each thread of a row has a linear function y -> a y + b. Applies the functions of the threads
 * before this one to 0, in order. Here a row has one thread, so the result is 0. */
DEVICE double row_before_line(double a, double b, int threads)
{
  (void)a, (void)b, (void)threads;
  return 0;
}
