/* Resampling: weighted sums of the pixels around a sampling point.
 *
 * The reference computes the weight of a pixel from its distance to the sampling point. Beyond the
 * border, the border pixels repeat. Scales of cases are multiples of 1/8, so that sampling points
 * are exact in f32. */
#include "entry.h"

typedef struct Axis {
  int64_t pixels, results;
  int taps;
  double scale;
  bool centred;
} Axis;

static bool is_backward(const Case *t)
{
  return t->test->op == OP_resample_backward;
}

/* Returns the geometry along axis 2 or 3. */
static Axis axis_of(const Case *t, const Tensor *y, uint32_t axis)
{
  const Tensor *x = &t->in[0];
  bool back = is_backward(t);
  return (Axis){.pixels = (back ? y : x)->dim[axis],
                .results = (back ? x : y)->dim[axis],
                .taps = (int)case_int(t, axis == 2 ? "taps0" : "taps1"),
                .scale = case_attr(t, axis == 2 ? "scale0" : "scale1"),
                .centred = case_attr(t, "centred") != 0};
}

/* Returns the kernel's value: a hat for 2 taps, Keys' cubic for 4. */
static double weight_at(int taps, double distance)
{
  const double d = fabs(distance), a = -0.75;
  if (taps == 2) return d < 1 ? 1 - d : 0;
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

/* Returns the weight of a pixel in result o. */
static double share_of(const Axis *a, int64_t o, int64_t pixel)
{
  double sum = 0, place = a->scale * ((double)o + (a->centred ? 0.5 : 0));
  if (a->taps == 1) {
    double at = fmin(floor(place), (double)(a->pixels - 1));
    return at == (double)pixel;
  }
  if (a->centred) place -= 0.5;
  for (int64_t v = -4 - a->results; v < a->pixels + a->results + 4; v++) {
    int64_t inside = v < 0 ? 0 : v >= a->pixels ? a->pixels - 1 : v;
    if (inside == pixel) sum += weight_at(a->taps, place - (double)v);
  }
  return sum;
}

static void shape_resample_of(const Case *t, Tensor *y)
{
  shape_of_first(t, y);
  y->dim[2] = case_int(t, is_backward(t) ? "h" : "oh");
  y->dim[3] = case_int(t, is_backward(t) ? "w" : "ow");
}

/* Adds each pixel to each result, weighted; in backward, each result to each pixel. */
static void reference_resample(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  Axis a = axis_of(t, y, 2), b = axis_of(t, y, 3);
  int64_t pixels = a.pixels * b.pixels, results = a.results * b.results;
  clear_sums(y, scale);
  for (int64_t o = 0; o < results; o++) {
    for (int64_t p = 0; p < pixels; p++) {
      double share =
          share_of(&a, o / b.results, p / b.pixels) * share_of(&b, o % b.results, p % b.pixels);
      if (share == 0) continue;
      for (int64_t image = 0; image < y->dim[0] * y->dim[1]; image++) {
        int64_t from = image * (is_backward(t) ? results : pixels) + (is_backward(t) ? o : p);
        int64_t to = image * (is_backward(t) ? pixels : results) + (is_backward(t) ? p : o);
        y->at[to] += share * x->at[from];
        scale[to] += fabs(share * x->at[from]);
      }
    }
  }
}

/* Returns the number of terms of one sum: the taps, or in backward all results. */
static double terms_of_resample(const Case *t)
{
  const Tensor *x = &t->in[0];
  return is_backward(t) ? (double)(x->dim[2] * x->dim[3]) : 16;
}

#define RESAMPLE WHOLE(shape_resample_of, reference_resample)
#define REASON   "weights of 4 roundings an axis, additions in a row"

static const OpTest tests[] = {
    {OP_resample, "n", "=", RESAMPLE, SUMMED(8, 0.5, terms_of_resample, REASON),
     CASES("fhb 2x3x5x7 oh=8 ow=4 taps0=1 taps1=1 scale0=0.625 scale1=1.75",
           "f 2x3x5x7 oh=8 ow=4 taps0=1 taps1=1 centred=1 scale0=0.625 scale1=1.75",
           "fhb 2x65x5x7 oh=8 ow=4 taps0=2 taps1=2 centred=1 scale0=0.625 scale1=1.75",
           "fh 2x3x5x7 oh=9 ow=3 taps0=2 taps1=2 scale0=0.5 scale1=3",
           "fhb 2x3x5x7 oh=8 ow=4 taps0=4 taps1=4 centred=1 scale0=0.625 scale1=1.75",
           "fb 1x9x2x5 oh=9 ow=9 taps0=4 taps1=4 scale0=0.125 scale1=0.5",
           /* sampling points beyond the last pixel, then all at the first pixel */
           "f 1x2x3x3 oh=4 ow=5 taps0=2 taps1=4 centred=1 scale0=1.5 scale1=0.875",
           "f 1x2x3x3 oh=1 ow=2 taps0=4 taps1=2 scale0=0 scale1=0"),
     GRADIENTS("fhb 1x2x4x3 oh=3 ow=5 taps0=2 taps1=2 centred=1 scale0=1.375 scale1=0.625",
               "f 1x2x3x4 oh=5 ow=3 taps0=4 taps1=4 centred=1 scale0=0.625 scale1=1.375",
               "f 1x2x3x4 oh=5 ow=2 taps0=1 taps1=1 scale0=0.625 scale1=2")},
    {OP_resample_backward, "d", "=", RESAMPLE, SUMMED(8, 0.5, terms_of_resample, REASON),
     CASES("fhb 2x3x8x4 h=5 w=7 taps0=1 taps1=1 scale0=0.625 scale1=1.75",
           "fhb 2x65x8x4 h=5 w=7 taps0=2 taps1=2 centred=1 scale0=0.625 scale1=1.75",
           "fh 2x3x9x3 h=5 w=7 taps0=2 taps1=2 scale0=0.5 scale1=3",
           "fhb 2x3x8x4 h=5 w=7 taps0=4 taps1=4 centred=1 scale0=0.625 scale1=1.75",
           "fb 1x9x9x9 h=2 w=5 taps0=4 taps1=4 scale0=0.125 scale1=0.5",
           "f 1x2x4x5 h=3 w=3 taps0=2 taps1=4 centred=1 scale0=1.5 scale1=0.875",
           "f 1x2x1x2 h=3 w=3 taps0=4 taps1=2 scale0=0 scale1=0",
           /* many results for each pixel, and pixels without a result */
           "f 1x2x40x2 h=3 w=33 taps0=4 taps1=1 centred=1 scale0=0.125 scale1=16"),
     GRADIENTS("fhb 1x2x3x5 h=4 w=3 taps0=2 taps1=2 centred=1 scale0=1.375 scale1=0.625",
               "f 1x2x5x3 h=3 w=4 taps0=4 taps1=4 centred=1 scale0=0.625 scale1=1.375")},
};
FAMILY(resample)
