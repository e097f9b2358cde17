/* Computes the results of instructions for one thread. */
#include <math.h>
#include <string.h>
#include "ptx_value.h"
#include "runtime/base/convert.h"
#include "walk.h"

/* ---- numbers as bits ---- */

/* The type of a float of at most 32 bits, or of a pair's elements. Other types are f32, value 0. */
static const ampc_dtype floats[] = {[PTX_f16] = AMPC_F16,
                                    [PTX_f16x2] = AMPC_F16,
                                    [PTX_bf16] = AMPC_BF16,
                                    [PTX_bf16x2] = AMPC_BF16,
                                    [PTX_f64] = AMPC_F32};

static double real_of(PtxType t, uint64_t bits)
{
  float f;
  double d;
  memcpy(&d, &bits, sizeof d);
  if (t == PTX_f64) return d;
  if (t == PTX_f32) /* the usual type, without the general conversion */
    memcpy(&f, &bits, sizeof f);
  else
    convert_widen(floats[t], &bits, &f, 1);
  return f;
}

static uint64_t bits_of(PtxType t, double value)
{
  float f = (float)value;
  uint64_t bits = 0;
  if (t == PTX_f64)
    memcpy(&bits, &value, sizeof bits);
  else if (t == PTX_f32)
    memcpy(&bits, &f, sizeof f);
  else
    convert_narrow(floats[t], &f, &bits, 1);
  return t == PTX_f16x2 || t == PTX_bf16x2 ? bits * 0x10001 : bits;
}

static bool is_real(PtxType t)
{
  PtxFamily f = ptx_type_family(t);
  return f == FAMILY_f16 || f == FAMILY_f32 || f == FAMILY_f64;
}

/* ---- arithmetic ---- */

/* A row of ptx.def without a value for this kind of type. */
#define NONE (known = false, 0)

/* Computes a float. For a pair of 16-bit floats, the result of the lower half is used twice: no
 * index depends on it. */
static bool real_value(const PtxInstruction *i, const uint64_t in[], uint64_t *out)
{
  double a = real_of(i->type, in[0]), b = i->n_in > 1 ? real_of(i->type, in[1]) : 0;
  double c = i->n_in > 2 ? real_of(i->type, in[2]) : 0, r = 0;
  bool known = true;
  switch (i->op) {
#define PTX_NAME(name, form, real, whole)                                                          \
  case PTX_OP_##name:                                                                              \
    r = real;                                                                                      \
    break;
#include "ptx.def"
  case PTX_OP_COUNT:
    return false;
  }
  *out = bits_of(i->type, r);
  return known;
}

static bool whole_value(const PtxInstruction *i, const uint64_t in[], uint64_t *out)
{
  PtxType t = i->type;
  uint64_t x = (uint64_t)whole(t, in[0]), y = i->n_in > 1 ? (uint64_t)whole(t, in[1]) : 0;
  uint64_t z = i->n_in > 2 ? in[2] : 0, r = 0;
  bool known = true, wide = i->op == PTX_OP_mul_wide || i->op == PTX_OP_mad_wide;
  switch (i->op) {
#define PTX_NAME(name, form, real, whole)                                                          \
  case PTX_OP_##name:                                                                              \
    r = whole;                                                                                     \
    break;
#include "ptx.def"
  case PTX_OP_COUNT:
    return false;
  }
  *out = masked(r, ptx_type_bytes(t) * (wide ? 2 : 1));
  return known;
}

/* ---- comparisons and conversions ---- */

static uint64_t comparison(const PtxInstruction *i, const uint64_t in[])
{
  PtxType t = i->type;
  PtxCompare found;
  if (is_real(t)) {
    double a = real_of(t, in[0]), b = real_of(t, in[1]);
    found = a < b ? COMPARE_lt : a == b ? COMPARE_eq : a > b ? COMPARE_gt : COMPARE_nan;
  } else {
    uint64_t x = (uint64_t)whole(t, in[0]), y = (uint64_t)whole(t, in[1]);
    found = below(t, x, y) ? COMPARE_lt : x == y ? COMPARE_eq : COMPARE_gt;
  }
  bool r = (found & i->compare) != 0, other = i->n_in > 2 && in[2] & 1;
  switch (i->join) {
  case JOIN_and:
    return r && other;
  case JOIN_or:
    return r || other;
  case JOIN_xor:
    return r != other;
  default:
    return r;
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
  if (isnan(x)) return 0;
  if (x < low) x = low;
  if (x >= top) return is_signed(t) ? (1ull << (bits - 1)) - 1 : masked(UINT64_MAX, bits / 8);
  return is_signed(t) ? (uint64_t)(int64_t)x : (uint64_t)x;
}

/* Converts. In cvt.rn.f16x2.f32 d, a, b, a becomes the upper half. */
static uint64_t conversion(const PtxInstruction *i, const uint64_t in[])
{
  uint32_t bytes = ptx_type_bytes(i->type);
  if (is_real(i->from)) {
    double x = real_of(i->from, in[0]);
    if (i->mode) x = rounded(i->mode, x);
    if (!is_real(i->type)) return masked(to_whole(i->type, x), bytes);
    if (i->n_in < 2) return bits_of(i->type, x);
    PtxType half = i->type == PTX_f16x2 ? PTX_f16 : PTX_bf16;
    return bits_of(half, x) << 16 | bits_of(half, real_of(i->from, in[1]));
  }
  int64_t x = whole(i->from, in[0]);
  if (!is_real(i->type)) return masked((uint64_t)x, bytes);
  return bits_of(i->type, is_signed(i->from) ? (double)x : (double)(uint64_t)x);
}

bool walk_value(const PtxInstruction *i, const uint64_t in[], uint64_t *out)
{
  switch (i->op) {
  case PTX_OP_mov:
  case PTX_OP_cvta:
    *out = in[0];
    return true;
  case PTX_OP_selp:
    *out = in[2] & 1 ? in[0] : in[1];
    return true;
  case PTX_OP_setp:
    *out = comparison(i, in);
    return true;
  case PTX_OP_cvt:
    *out = conversion(i, in);
    return true;
  default:
    return is_real(i->type) ? real_value(i, in, out) : whole_value(i, in, out);
  }
}
