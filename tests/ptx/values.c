/* Computes instructions for all lanes of a warp, as GPUs do: f32 in f32, one rounding, NaN as
 * 0x7fffffff. The formulas are those of runner/cost/ptx.def. Approximate functions (.approx) are
 * computed exactly and rounded: GPUs may return a neighbour. */
#include "code.h"
#include "runner/cost/ptx_value.h"
#include "runtime/base/convert.h"
#include <fenv.h>
#include <string.h>
#include <tgmath.h>

#define EACH_LANE for (int lane = 0; lane < PTX_LANES; lane++)
#define NONE      0
#define QUIET_F32 0x7fffffffu
#define QUIET_F64 0x7fffffffffffffffu

static bool is_real(PtxType t)
{
  return ptx_type_family(t) == FAMILY_f32 || ptx_type_family(t) == FAMILY_f64;
}

static bool is_half(PtxType t)
{
  return t == PTX_f16 || t == PTX_bf16;
}

/* ---- bits ---- */

static inline float f32_of(uint64_t bits)
{
  uint32_t low = (uint32_t)bits;
  float x;
  memcpy(&x, &low, sizeof x);
  return x;
}

static inline double f64_of(uint64_t bits)
{
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint64_t f32_bits(float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return x != x ? QUIET_F32 : bits;
}

static inline uint64_t f64_bits(double x)
{
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return x != x ? QUIET_F64 : bits;
}

/* ---- floats ---- */

/* min and max of PTX: -0 is below +0, and NaN is ignored. */
#define LEAST(T, name)                                                                             \
  static inline T name(T a, T b)                                                                   \
  {                                                                                                \
    return a < b || b != b ? a : b < a || a != a ? b : signbit(a) ? a : b;                         \
  }
LEAST(float, least_f32)
LEAST(double, least_f64)
#undef fmin
#undef fmax
#define fmin(a, b) _Generic(a, float : least_f32, double : least_f64)(a, b)
#define fmax(a, b) (-fmin(-(a), -(b)))

/* A case of the table's op in type T. */
#define REAL_CASE(name, T, OF, BITS, value)                                                        \
  case PTX_OP_##name:                                                                              \
    EACH_LANE                                                                                      \
    {                                                                                              \
      T a = OF(in[0][lane]), b = OF(in[1][lane]), c = OF(in[2][lane]);                             \
      (void)a, (void)b, (void)c;                                                                   \
      out[lane] = BITS(value);                                                                     \
    }                                                                                              \
    break;

static void compute_f32(PtxOp op, const uint64_t *const in[], PtxRow out)
{
  switch (op) {
#define PTX_NAME(name, form, of_reals, of_integers)                                                \
  REAL_CASE(name, float, f32_of, f32_bits, of_reals)
#include "runner/cost/ptx.def"
  case PTX_OP_COUNT:
    break;
  }
}

static void compute_f64(PtxOp op, const uint64_t *const in[], PtxRow out)
{
  switch (op) {
#define PTX_NAME(name, form, of_reals, of_integers)                                                \
  REAL_CASE(name, double, f64_of, f64_bits, of_reals)
#include "runner/cost/ptx.def"
  case PTX_OP_COUNT:
    break;
  }
}

/* Computes fma.rz.f32. */
static void truncated_fma(const uint64_t *const in[], PtxRow out)
{
  fesetround(FE_TOWARDZERO);
  EACH_LANE
  {
    volatile float a = f32_of(in[0][lane]), b = f32_of(in[1][lane]), c = f32_of(in[2][lane]);
    volatile float r = fmaf(a, b, c);
    out[lane] = f32_bits(r);
  }
  fesetround(FE_TONEAREST);
}

/* ---- integers ---- */

/* Computes an op of the table in type t, a constant at each call. */
static inline __attribute__((always_inline)) void
compute_whole(const PtxType t, const PtxCode *i, const uint64_t *const rows[], PtxRow out)
{
  switch ((PtxOp)i->op) {
#define PTX_NAME(name, form, of_reals, of_integers)                                                \
  case PTX_OP_##name:                                                                              \
    EACH_LANE                                                                                      \
    {                                                                                              \
      const uint64_t in[] = {rows[0][lane], rows[1][lane], rows[2][lane], rows[3][lane]};          \
      uint64_t x = (uint64_t)whole(t, in[0]), y = (uint64_t)whole(t, in[1]), z = in[2];            \
      (void)x, (void)y, (void)z;                                                                   \
      out[lane] = of_integers;                                                                     \
    }                                                                                              \
    break;
#include "runner/cost/ptx.def"
  case PTX_OP_COUNT:
    break;
  }
}

/* ---- comparisons and conversions ---- */

#define RELATION(a, b)                                                                             \
  ((a) < (b) ? COMPARE_lt : (a) == (b) ? COMPARE_eq : (a) > (b) ? COMPARE_gt : COMPARE_nan)

static void compare(const PtxCode *i, const uint64_t *const in[], PtxRow out)
{
  PtxType t = (PtxType)i->type;
  bool sign = is_signed(t);
  if (t == PTX_f32)
    EACH_LANE out[lane] = RELATION(f32_of(in[0][lane]), f32_of(in[1][lane]));
  else if (t == PTX_f64)
    EACH_LANE out[lane] = RELATION(f64_of(in[0][lane]), f64_of(in[1][lane]));
  else if (sign)
    EACH_LANE out[lane] = RELATION(whole(t, in[0][lane]), whole(t, in[1][lane]));
  else
    EACH_LANE out[lane] =
        RELATION((uint64_t)whole(t, in[0][lane]), (uint64_t)whole(t, in[1][lane]));
  EACH_LANE
  {
    bool r = out[lane] & i->compare, other = in[2][lane] & 1;
    out[lane] = i->join == JOIN_and   ? r && other
                : i->join == JOIN_or  ? r || other
                : i->join == JOIN_xor ? r != other
                                      : r;
  }
}

static double rounded(char mode, double x)
{
  return mode == 'z' ? trunc(x) : mode == 'm' ? floor(x) : mode == 'p' ? ceil(x) : nearbyint(x);
}

/* Converts to an integer. Numbers out of range are clamped, and NaN becomes 0. */
static uint64_t to_whole(PtxType t, double x)
{
  uint32_t bits = 8 * ptx_type_bytes(t);
  double top = ldexp(1, (int)(is_signed(t) ? bits - 1 : bits)), low = is_signed(t) ? -top : 0;
  if (x != x) return 0;
  if (x < low) x = low;
  if (x >= top) return is_signed(t) ? (1ull << (bits - 1)) - 1 : masked(UINT64_MAX, bits / 8);
  return is_signed(t) ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static void widen(PtxType from, const uint64_t *in, float out[PTX_LANES])
{
  uint16_t bits[PTX_LANES];
  EACH_LANE bits[lane] = (uint16_t)in[lane];
  convert_widen(from == PTX_f16 ? AMPC_F16 : AMPC_BF16, bits, out, PTX_LANES);
}

static void narrow(PtxType to, const uint64_t *in, uint16_t out[PTX_LANES])
{
  float x[PTX_LANES];
  EACH_LANE x[lane] = f32_of(in[lane]);
  convert_narrow(to == PTX_f16 || to == PTX_f16x2 ? AMPC_F16 : AMPC_BF16, x, out, PTX_LANES);
  EACH_LANE if (x[lane] != x[lane]) out[lane] = 0x7fff;
}

/* Converts floats of 32 or 64 bits, after rounding to integers if the instruction says so. */
static void convert_reals(const PtxCode *i, const uint64_t *in, PtxRow out)
{
  PtxType t = (PtxType)i->type;
  EACH_LANE
  {
    double x = i->from == PTX_f32 ? (double)f32_of(in[lane]) : f64_of(in[lane]);
    if (i->mode) x = rounded(i->mode, x);
    out[lane] = t == PTX_f32 ? f32_bits((float)x) : t == PTX_f64 ? f64_bits(x) : to_whole(t, x);
  }
}

static void convert(const PtxCode *i, const uint64_t *const in[], PtxRow out)
{
  PtxType t = (PtxType)i->type, from = (PtxType)i->from;
  uint16_t bits[2][PTX_LANES];
  float x[PTX_LANES];
  if (is_half(from)) {
    widen(from, in[0], x);
    EACH_LANE out[lane] = f32_bits(x[lane]);
  } else if (ptx_type_family(t) == FAMILY_f16) { /* of two numbers, the first becomes the upper */
    bool pair = t == PTX_f16x2 || t == PTX_bf16x2;
    narrow(t, in[pair], bits[0]);
    if (pair) narrow(t, in[0], bits[1]);
    EACH_LANE out[lane] = bits[0][lane] | (pair ? (uint64_t)bits[1][lane] << 16 : 0);
  } else if (is_real(from)) {
    convert_reals(i, in[0], out);
  } else if (t == PTX_f32) {
    if (from == PTX_u64)
      EACH_LANE out[lane] = f32_bits((float)in[0][lane]);
    else
      EACH_LANE out[lane] = f32_bits((float)whole(from, in[0][lane]));
  } else if (t == PTX_f64) {
    if (from == PTX_u64)
      EACH_LANE out[lane] = f64_bits((double)in[0][lane]);
    else
      EACH_LANE out[lane] = f64_bits((double)whole(from, in[0][lane]));
  } else {
    EACH_LANE out[lane] = (uint64_t)whole(t, (uint64_t)whole(from, in[0][lane]));
  }
}

static bool converts(const PtxInstruction *i)
{
  bool to_half = ptx_type_family(i->type) == FAMILY_f16;
  if (strstr(i->name, ".rz.")) return false;
  if (ptx_type_family(i->from) == FAMILY_f16) return is_half(i->from) && i->type == PTX_f32;
  return !to_half || (i->from == PTX_f32 && i->n_in == (is_half(i->type) ? 1 : 2));
}

/* ---- instructions ---- */

bool ptx_computes(const PtxInstruction *i)
{
  static const char *const values[][2] = {
#define PTX_NAME(name, form, of_reals, of_integers) {#of_reals, #of_integers},
#include "runner/cost/ptx.def"
  };
  if (i->op == PTX_OP_mov || i->op == PTX_OP_selp || i->op == PTX_OP_cvta) return true;
  if (i->op == PTX_OP_cvt) return converts(i);
  if (ptx_type_family(i->type) == FAMILY_f16 || i->n_to != 1) return false;
  return strcmp(values[i->op][!is_real(i->type)], "NONE") != 0;
}

static void compute(const PtxCode *i, const uint64_t *const in[], PtxRow out)
{
  switch ((PtxType)i->type) {
  case PTX_f32:
    if (i->mode == 'z')
      truncated_fma(in, out);
    else
      compute_f32((PtxOp)i->op, in, out);
    break;
  case PTX_f64:
    compute_f64((PtxOp)i->op, in, out);
    break;
  case PTX_pred:
    compute_whole(PTX_pred, i, in, out);
    break;
  case PTX_s16:
    compute_whole(PTX_s16, i, in, out);
    break;
  case PTX_b16:
  case PTX_u16:
    compute_whole(PTX_u16, i, in, out);
    break;
  case PTX_s32:
    compute_whole(PTX_s32, i, in, out);
    break;
  case PTX_b32:
  case PTX_u32:
    compute_whole(PTX_u32, i, in, out);
    break;
  case PTX_s64:
    compute_whole(PTX_s64, i, in, out);
    break;
  default:
    compute_whole(PTX_u64, i, in, out);
  }
}

/* .ftz: numbers below the smallest normal one become 0. In f64 it occurs only with .approx, which
 * has no lower half of the bits (rcp.approx.ftz.f64). Integers stay. */
static void flush(PtxType t, PtxRow x)
{
  if (t == PTX_f32) EACH_LANE if (fabsf(f32_of(x[lane])) < 0x1p-126f) x[lane] &= 1u << 31;
  if (t == PTX_f64)
    EACH_LANE x[lane] &= fabs(f64_of(x[lane])) < 0x1p-1022 ? 1ull << 63 : ~0ull << 32;
}

void ptx_compute(const PtxCode *i, const uint64_t *const in[], PtxRow out)
{
  PtxRow flushed;
  const uint64_t *const first[] = {flushed, in[1], in[2], in[3]};
  if (i->flush) {
    memcpy(flushed, in[0], sizeof flushed);
    flush((PtxType)i->from, flushed);
    in = first;
  }
  if (i->op == PTX_OP_mov || i->op == PTX_OP_cvta)
    memcpy(out, in[0], sizeof(PtxRow));
  else if (i->op == PTX_OP_selp)
    EACH_LANE out[lane] = in[2][lane] & 1 ? in[0][lane] : in[1][lane];
  else if (i->op == PTX_OP_setp)
    compare(i, in, out);
  else if (i->op == PTX_OP_cvt)
    convert(i, in, out);
  else
    compute(i, in, out);
  if (i->flush) flush((PtxType)i->type, out);
}
