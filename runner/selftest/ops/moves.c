/* Types and shapes: casts, views, and ops that move elements. */
#include "entry.h"
#include <string.h>

#define LOOP "suite scan: a loop in a job that trains"

/* ---- casts ---- */

/* Casts an element. A cast between integers keeps the low bits, as in C. A cast of a float to an
 * integer truncates and saturates, and NaN becomes 0. A cast to bool tests for non-zero. */
static double cast_element(DType from, DType to, double x)
{
  if (dtype_is_float(to)) return x;
  if (to == AMPC_BOOL) return x != 0;
  if (dtype_is_float(from)) return number_round(to, x);
  double span = to == AMPC_U8 ? 0x1p8 : to == AMPC_I32 ? 0x1p32 : 0;
  if (span == 0) return x;
  double low = to == AMPC_U8 ? 0 : -span / 2;
  return x - span * floor((x - low) / span);
}

static void reference_cast(const Case *t, Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) {
    y->at[i] = cast_element(t->in[0].dtype, y->dtype, t->in[0].at[i]);
    scale[i] = fabs(y->at[i]);
  }
}

/* ---- moves ---- */

static void reference_expand(const Case *t, Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) y->at[i] = t->in[0].at[broadcast_index(&t->in[0], y, i)];
  scale_as_size(y, scale);
}

/* Returns the axis that an attribute names; -1 is the last one. */
static uint32_t axis_attr(const Case *t, const char *name)
{
  int axis = (int)case_attr(t, name);
  return (uint32_t)(axis < 0 ? axis + (int)t->in[0].rank : axis);
}

static void shape_transpose_of(const Case *t, Tensor *y)
{
  uint32_t a = axis_attr(t, "dim0"), b = axis_attr(t, "dim1");
  shape_of_first(t, y);
  y->dim[a] = t->in[0].dim[b];
  y->dim[b] = t->in[0].dim[a];
}

static bool moved_transpose(const Case *t, int64_t i, int64_t *at)
{
  (void)i;
  uint32_t a = axis_attr(t, "dim0"), b = axis_attr(t, "dim1");
  int64_t swapped = at[a];
  at[a] = at[b];
  at[b] = swapped;
  return true;
}

/* Returns the axis of the input that becomes axis d of the result. */
static uint32_t permuted_axis(const Case *t, uint32_t d)
{
  static const char *const names[MAX_RANK] = {"axis0", "axis1", "axis2", "axis3", "axis4", "axis5"};
  return (uint32_t)case_int(t, names[d]);
}

static void shape_permute_of(const Case *t, Tensor *y)
{
  y->rank = t->in[0].rank;
  for (uint32_t d = 0; d < y->rank; d++) y->dim[d] = t->in[0].dim[permuted_axis(t, d)];
}

static bool moved_permute(const Case *t, int64_t i, int64_t *at)
{
  (void)i;
  int64_t to[MAX_RANK];
  memcpy(to, at, sizeof to);
  for (uint32_t d = 0; d < t->in[0].rank; d++) at[permuted_axis(t, d)] = to[d];
  return true;
}

/* Computes the shape by a loop over the slice, as the language defines a range. */
static void shape_slice_of(const Case *t, Tensor *y)
{
  int64_t start = case_int(t, "start"), stop = case_int(t, "stop");
  int64_t count = 0;
  for (int64_t i = start; i < stop; i += case_int(t, "step")) count++;
  shape_of_first(t, y);
  y->dim[case_axis(t)] = count;
}

static bool moved_slice(const Case *t, int64_t i, int64_t *at)
{
  (void)i;
  at[case_axis(t)] = case_int(t, "start") + at[case_axis(t)] * case_int(t, "step");
  return true;
}

static bool moved_slice_backward(const Case *t, int64_t i, int64_t *at)
{
  (void)i;
  int axis = case_axis(t);
  int64_t behind = at[axis] - case_int(t, "start"), step = case_int(t, "step");
  at[axis] = behind / step;
  return behind >= 0 && behind % step == 0 && at[axis] < t->in[0].dim[axis];
}

static void shape_cat_of(const Case *t, Tensor *y)
{
  shape_of_first(t, y);
  for (uint32_t k = 1; k < t->n_in; k++) y->dim[case_axis(t)] += t->in[k].dim[case_axis(t)];
}

/* Copies each input after the previous one. */
static void reference_cat(const Case *t, Tensor *y, double *scale)
{
  int64_t before = 0;
  for (uint32_t k = 0; k < t->n_in; before += t->in[k++].dim[case_axis(t)]) {
    const Tensor *x = &t->in[k];
    Rows to = rows_of(y, case_axis(t));
    for (Rows r = rows_of(x, case_axis(t)); next_row(&r) && next_row(&to);)
      EACH (i, r) y->at[to.start + before * to.stride + i - r.start] = x->at[i];
  }
  scale_as_size(y, scale);
}

static void shape_pad_of(const Case *t, Tensor *y)
{
  shape_of_first(t, y);
  y->dim[case_axis(t)] += (int64_t)(case_attr(t, "before") + case_attr(t, "after"));
}

static bool moved_pad(const Case *t, int64_t i, int64_t *at)
{
  (void)i;
  int64_t *of = &at[case_axis(t)];
  *of -= case_int(t, "before");
  return *of >= 0 && *of < t->in[0].dim[case_axis(t)];
}

static bool moved_flip(const Case *t, int64_t i, int64_t *at)
{
  (void)i;
  int axis = case_axis(t);
  at[axis] = t->in[0].dim[axis] - 1 - at[axis];
  return true;
}

static void shape_shifted_of(const Case *t, Tensor *y)
{
  shape_of_first(t, y);
  y->dim[y->rank - 2] = case_int(t, "h");
  y->dim[y->rank - 1] = case_int(t, "w");
}

/* Finds the pixel at the position plus its sample's offset. False if it is outside the image. */
static bool moved_shifted(const Case *t, int64_t i, int64_t *at)
{
  (void)i;
  const Tensor *x = &t->in[0];
  const double *offset = t->in[1].at + at[0] * 2;
  bool inside = true;
  for (uint32_t d = x->rank - 2; d < x->rank; d++) {
    at[d] += (int64_t)*offset++;
    inside = inside && at[d] >= 0 && at[d] < x->dim[d];
  }
  return inside;
}

static void reference_indices(const Case *t, Tensor *y, double *scale)
{
  (void)t;
  for (int64_t i = 0; i < y->n; i++) y->at[i] = (double)i;
  scale_as_size(y, scale);
}

ELEMENT(like, x[1], fabs(r))
ELEMENT(full_like, x[1], fabs(r))

static void reference_int8(const Case *t, Tensor *y, double *scale)
{
  const Tensor *codes = &t->in[0], *scales = &t->in[1];
  for (int64_t i = 0; i < y->n; i++)
    y->at[i] = (codes->at[i] - 128) / 127 * scales->at[i / (y->n / scales->n)];
  scale_as_size(y, scale);
}

static void reference_nf4(const Case *t, Tensor *y, double *scale)
{
  static const double values[] = {-1,
                                  -0.6961928009986877,
                                  -0.5250730514526367,
                                  -0.39491748809814453,
                                  -0.28444138169288635,
                                  -0.18477343022823334,
                                  -0.09105003625154495,
                                  0,
                                  0.07958029955625534,
                                  0.16093020141124725,
                                  0.24611230194568634,
                                  0.33791524171829224,
                                  0.44070982933044434,
                                  0.5626170039176941,
                                  0.7229568362236023,
                                  1};
  for (int64_t i = 0; i < y->n; i++) {
    int pair = (int)t->in[0].at[i / 2], code = i % 2 ? pair % 16 : pair / 16;
    y->at[i] = values[code] * t->in[1].at[i / 64];
  }
  scale_as_size(y, scale);
}

static const OpTest tests[] = {
    {OP_cast, "w", "d", FIRST(reference_cast), EXACT,
     CASES("fhbiluo 1025 dtype=f", "fhbiluo 1025 dtype=h", "fhbiluo 1025 dtype=b",
           "fhbiluo 1025 dtype=i", "fhbiluo 1025 dtype=l", "fhbiluo 1025 dtype=u",
           "fhbiluo 1025 dtype=o",
           /* f16: the largest number, the first that rounds to inf, subnormals, half of the
            * smallest one */
           "f 9{65503,65504,65519,65519.99609375,65520,-65520,0x1p-24,0x1p-25,0x1.8p-25} dtype=h",
           /* ties to even and their neighbours, among subnormal and normal numbers */
           "f 8{0x1.8p-24,0x1.7fffp-24,0x1.ffcp-15,0x1.002p0,0x1.006p0,0x1.0020001p0,1e-40,-0.0} "
           "dtype=h",
           /* bf16: like f16, and a NaN whose payload would overflow if it were rounded */
           "f 8{0x1.fep127,0x1.fefffep127,0x1.ffp127,0x1.01p0,0x1.03p0,0x1.0100001p0,1e-40,nan} "
           "dtype=b",
           /* floats beyond the integers: the nearest limit; NaN is 0 */
           "f 8{2147483520,2147483648,-2147483648,-3e9,nan,inf,-inf,-1.99} dtype=i",
           "f 8{9.2233715e18,9.3e18,-9.3e18,nan,inf,-inf,0.99,-0.99} dtype=l",
           "f 8{254.9,255.5,256,-1,nan,inf,-inf,1.5} dtype=u",
           "hb 6{1.5,-2.5,nan,inf,-inf,1e4} dtype=i",
           /* integers that a detour through f32 would round twice */
           "l 6{65519,65520,2049,16777217,-70000,9007199254740991} dtype=h",
           "l 6{65519,65520,2049,16777217,-70000,9007199254740991} dtype=b",
           /* casts between integers keep the low bits */
           "il 7{-1,255,256,300,-129,127,70000} dtype=u",
           "l 5{2147483647,2147483648,-2147483649,4294967296,-1} dtype=i",
           /* many blocks and a partial one */
           "fhb 262147 dtype=f"),
     GRADIENTS("f 5x3~n dtype=h", "fh 5x3~n dtype=b", "hb 5x3~n dtype=f")},
    {OP_detach, "w", "=", FIRST(reference_same_order), EXACT, CASES("fhbiluo 7x33")},
    {OP_low, "w", "=", FIRST(reference_same_order), EXACT, CASES("fhbiluo 7x33"),
     GRADIENTS("fhb 5x3")},
    {OP_carry, NO_CASES(LOOP), NO_GRADIENT(LOOP)},
    {OP_next, NO_CASES(LOOP), NO_GRADIENT(LOOP)},
    {OP_turn, NO_CASES(LOOP), NO_GRADIENT(LOOP)},
    {OP_stack, NO_CASES(LOOP), NO_GRADIENT(LOOP)},
    {OP_copy, NO_CASES(LOOP)},
    {OP_scan, NO_CASES(LOOP)},
    {OP_scan_end, NO_CASES(LOOP)},
    {OP_reshape, "w", "=", WHOLE(shape_given_of, reference_same_order), EXACT,
     CASES("fhbiluo 7x33 shape=33x7", "f 2x3x4x5 shape=120", "h s shape=1x1x1"),
     GRADIENTS("fhb 5x3 shape=3x5")},
    {OP_expand, "w", "=", WHOLE(shape_given_of, reference_expand), EXACT,
     CASES("fhbiluo 33 shape=7x33", "fhb 7x1x5 shape=2x7x3x5", "f s shape=1025", "h 1x1 shape=3x7"),
     GRADIENTS("fhb 3x1 shape=2x3x5")},
    {OP_transpose, "w", "=", MOVE(transpose, shape_transpose_of), EXACT,
     CASES("fhbiluo 7x33 dim0=0 dim1=1", "fhb 3x5x7 dim0=0 dim1=2", "fh 2x3x5x7 dim0=1 dim1=2",
           "f 1023x3 dim0=1 dim1=0",
           "f 2x2x3x2x3x2 dim0=1 dim1=4", /* more than one tile of the kernel, with a remainder on
                                             both sides */
           "fh 513x259 dim0=0 dim1=1"),
     GRADIENTS("fhb 5x3 dim0=0 dim1=1", "f 2x3x4 dim0=0 dim1=2")},
    {OP_permute, "w", "=", MOVE(permute, shape_permute_of), EXACT,
     CASES("fhbiluo 7x33 axis0=1 axis1=0", "fhb 2x3x5x7 axis0=0 axis1=2 axis2=3 axis3=1",
           "fh 2x3x4x5x2x3 axis0=5 axis1=2 axis2=0 axis3=4 axis4=1 axis5=3",
           "f 1025x3 axis0=0 axis1=1"),
     GRADIENTS("fhb 2x3x4 axis0=2 axis1=0 axis2=1"),
     CHAINS(/* all ops that keep the layout of images, and ops that leave it */
            {"h = conv2d(a, b, none) + c; s = slice(pad(h, dim=3, before=1, after=0, value=0.5), "
             "dim=3, start=0, stop=2); d = cat(softmax(h, dim=1), s, dim=1); e = slice(d - mean(d, "
             "dim=12, keepdim=1), dim=1, start=2, stop=6); p = reshape(permute(h, axis0=0, "
             "axis1=2, axis2=3, axis3=1), shape=[2, 6, 4]); transpose(reshape(h, shape=[2, 4, 6]), "
             "dim0=1, dim1=2) * p + transpose(reshape(e, shape=[2, 4, 6]), dim0=1, dim1=2)",
             "fhb 2x3x3x2~n 4x3x1x1~n 3x1~n 2x6x4~d"})},
    {OP_slice, "w", "=", MOVE(slice, shape_slice_of), EXACT,
     CASES("fhbiluo 33 dim=0 start=5 stop=29 step=1", "fhb 7x33 dim=1 start=0 stop=33 step=3",
           "fhb 7x33 dim=0 start=6 stop=7 step=1", "f 3x1025x2 dim=1 start=1 stop=1024 step=7"),
     GRADIENTS("fhb 3x7 dim=1 start=1 stop=6 step=2", "f 7x3 dim=0 start=2 stop=7 step=1")},
    {OP_slice_backward, "w", "=", MOVE(slice_backward, shape_sized_of), EXACT,
     CASES("fhb 24 dim=0 start=5 step=1 size=33", "fhb 7x11 dim=1 start=0 step=3 size=33",
           "f 3x5x2 dim=1 start=2 step=7 size=33"),
     GRADIENTS("fhb 3x3 dim=1 start=1 step=2 size=7")},
    {OP_cat, "wwww", "=", WHOLE(shape_cat_of, reference_cat), EXACT,
     CASES("fhbiluo 7 33 1 dim=0", "fhb 3x7 3x1 3x33 dim=1", "fh 2x3x5 2x1x5 2x2x5 dim=1",
           "f 1025 1 dim=0", "h 3x5 dim=0", "f 300x259 300x257 dim=1", "h 33 f:7 dim=0 result=f"),
     GRADIENTS("fhb 2x3 2x1 2x5 dim=1", "f 3 4 dim=0"),
     CHAINS({"slice(cat(a, exp(a), dim=1), dim=1, start=1, stop=9, step=2)", "fhb 3x5~n 3x4~d"})},
    {OP_pad, "w", "=", MOVE(pad, shape_pad_of), EXACT,
     CASES("fhbiluo 7x33 dim=1 before=2 after=0", "fhb 3x5x7 dim=1 before=1 after=3 value=-1.5",
           "f 33 dim=0 before=0 after=5 value=2"),
     GRADIENTS("fhb 3x4 dim=1 before=1 after=2 value=3")},
    {OP_flip_axis, "w", "=", MOVE(flip, shape_of_first), EXACT,
     CASES("fhbiluo 7x33 dim=1", "fhb 3x5x7 dim=1", "f 1025x1 dim=0"),
     GRADIENTS("fhb 2x3x4 dim=1")},
    {OP_shifted, "wk", "=", MOVE(shifted, shape_shifted_of), EXACT,
     CASES("fhbiluo 2x3x5x7 i:2x2{1,-2,-3,0} h=5 w=7", "fhb 3x9x8 i:3x2{0,0,4,3,2,1} h=5 w=4",
           /* offsets that move the whole image out; the last one is near the limit of i32 */
           "f 1x2x2x3x3 i:1x2{-40,2} h=7 w=2", "f 1x1x1x33 i:1x2{0,-2147483000} h=1 w=33"),
     GRADIENTS("fhb 2x2x4x3 i:2x2{1,0,-2,1} h=3 w=4")},
    {OP_int8_values, "ww", "f", WHOLE(shape_given_of, reference_int8),
     ULPS(2, "1 / 127 and two products"),
     CASES("u 231 f:7 shape=7x33", "u 5{0,1,128,129,255} f:5 shape=5x1", "u 1024 f:4 shape=4x256")},
    {OP_nf4_values, "ww", "f", WHOLE(shape_given_of, reference_nf4), ROUNDED,
     CASES("u 224 f:7 shape=7x64", "u 32 f:1 shape=8x8", "u 1600 f:50 shape=5x640")},
    {OP_full, "w", "=", WHOLE(shape_given_of, reference_expand), EXACT,
     CASES("fhbiluo s shape=7x33")},
    {OP_indices, "", "l", WHOLE(shape_given_of, reference_indices), EXACT,
     CASES("l shape=7x33", "l shape=1025")},
    {OP_like, "ww", "=", MAP(like), EXACT, CASES("fhb 33 f:33", "hb 4 o:4"),
     CHAINS(/* the gradient must pass to the value, not to the input that only gives the type */
            {"like(detach(a), a)", "fhb 33~n 33~d"})},
    {OP_full_like, "ww", "=", MAP(full_like), EXACT, CASES("fhb 7x33 s", "f 1 s")},
};
FAMILY(moves)
