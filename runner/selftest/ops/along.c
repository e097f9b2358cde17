/* Sequential ops along an axis: cumulative sums and products, sorting. */
#include "entry.h"

/* Returns the row, from its start or from its end. */
static Rows order_of(const Rows *r, bool reverse)
{
  Rows o = *r;
  if (!reverse) return o;
  o.start = r->end - r->stride;
  o.end = r->start - r->stride;
  o.stride = -r->stride;
  return o;
}

static void reference_cumsum(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  for (Rows r = rows_of(x, case_axis(t)); next_row(&r);) {
    Rows order = order_of(&r, case_attr(t, "reverse") != 0);
    double sum = 0, size = 0;
    EACH (i, order) {
      y->at[i] = sum += x->at[i];
      scale[i] = size += fabs(x->at[i]);
    }
  }
}

static void reference_cumprod(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  for (Rows r = rows_of(x, case_axis(t)); next_row(&r);) {
    Rows order = order_of(&r, case_attr(t, "reverse") != 0);
    double product = 1;
    EACH (i, order) {
      double before = product;
      product *= x->at[i];
      y->at[i] = case_attr(t, "exclusive") != 0 ? before : product;
    }
  }
  scale_as_size(y, scale);
}

/* Computes y_c = b_c + a_n y_n, where n follows c; forth: y_c = b_c + a_c y_n, n precedes c. */
static void reference_line_sums(const Case *t, Tensor *y, double *scale)
{
  const Tensor *b = &t->in[0], *a = &t->in[1];
  bool forth = case_attr(t, "forth") != 0;
  for (Rows r = rows_of(b, case_axis(t)); next_row(&r);) {
    Rows order = order_of(&r, !forth);
    EACH (i, order) {
      int64_t next = i - order.stride;
      bool first = i == order.start;
      double factor = first ? 0 : a->at[forth ? i : next];
      y->at[i] = b->at[i] + (first ? 0 : factor * y->at[next]);
      scale[i] = fabs(b->at[i]) + (first ? 0 : fabs(factor) * scale[next]);
    }
  }
}

/* Returns the position of element i in the sorted row. NaN is largest; ties keep their order. */
static int64_t rank_of(const Case *t, const Rows *r, int64_t i)
{
  const double *x = t->in[0].at;
  bool down = case_attr(t, "descending") != 0;
  int64_t before = 0;
  EACH (k, *r) {
    bool same = x[k] == x[i] || (isnan(x[k]) && isnan(x[i]));
    bool less = !same && (isnan(x[i]) || x[k] < x[i]);
    before += same ? k < i : less != down;
  }
  return before;
}

static void reference_sort_order(const Case *t, Tensor *y, double *scale)
{
  clear_sums(y, scale);
  for (Rows r = rows_of(&t->in[0], case_axis(t)); next_row(&r);)
    EACH (i, r) y->at[r.start + rank_of(t, &r, i) * r.stride] = (double)((i - r.start) / r.stride);
}

static bool moved_pick_ordered(const Case *t, int64_t i, int64_t *at)
{
  at[case_axis(t)] = (int64_t)t->in[1].at[i];
  return true;
}

static void reference_place_ordered(const Case *t, Tensor *y, double *scale)
{
  Rows to = rows_of(y, case_axis(t));
  clear_sums(y, scale);
  for (Rows r = rows_of(&t->in[0], case_axis(t)); next_row(&r) && next_row(&to);)
    EACH (i, r) y->at[to.start + (int64_t)t->in[1].at[i] * to.stride] = t->in[0].at[i];
  scale_as_size(y, scale);
}

static const OpTest tests[] = {
    {OP_cumsum, "n", "=", FIRST(reference_cumsum),
     SUMMED(1, SUMS(1), terms_of_row, "in double and rounded once; in doubles additions in a row"),
     CASES("fhb 33x7 dim=1", "fhb 33x7 dim=0", "fh 3x5x7 dim=1 reverse=1", "fhb 7x1025 dim=1",
           "f 3x33000 dim=1 reverse=1", "f 1025x3 dim=0", "f 1 dim=0", "iluo 7x33 dim=1 result=l",
           "i 1030x3 dim=0 result=l",
           /* elements before and after an infinity or a NaN */
           "fhb 3x4{1,inf,2,3,1,nan,2,3,inf,1,-inf,2} dim=1"),
     GRADIENTS("fhb 5x7~n dim=1", "f 5x7~n dim=0 reverse=1")},
    {OP_cumprod, "n", "=", FIRST(reference_cumprod),
     SUMMED(1, SUMS(1), terms_of_row, "in double and rounded once; in doubles products in a row"),
     CASES("fhb 33x7~z dim=1", "f 7x1025~o dim=1", "fh 1025x3~o dim=0",
           "fh 3x5x7~z dim=1 reverse=1", "fhb 33x7~z dim=0 exclusive=1",
           "f 3x33000~o dim=1 reverse=1 exclusive=1", "f 1 dim=0",
           "il "
           "7x9{1,2,3,-1,2,5,1,0,4,1,1,-2,3,2,2,2,1,7,1,1,1,1,1,1,1,1,1,2,3,0,1,4,5,-6,2,2,1,2,3,-"
           "1,2,5,1,0,4,1,1,-2,3,2,2,2,1,7,1,1,1,1,1,1,1,1,1} dim=1 result=l",
           "fhb 3x4{1,0,2,3,1,nan,2,0,inf,-2,0.5,2} dim=1"),
     GRADIENTS("fhb 5x7~z dim=1", "f 3x4x2~z dim=1",
               /* rows with one zero and with two */
               "fhb 3x4{1,0,2,3,2,0,-1,0,0,2,1,-2} dim=1", "f 3x4x2~z dim=1 reverse=1",
               "f 3x4~z dim=1 exclusive=1",
               "f 3x4{1,0,2,3,2,0,-1,0,0,2,1,-2} dim=1 reverse=1 exclusive=1"),
     CHAINS({"cumsum(a, dim=1) * cumprod(a, dim=1)", "fhb 5x4~z 5x4~d"})},
    {OP_line_sums, "dt", "=", FIRST(reference_line_sums),
     SUMMED(2, SUMS(2), terms_of_row, "in double and rounded once; in doubles two roundings each"),
     CASES("fhb 33x7 33x7 dim=1", "f 7x1025 7x1025 dim=1", "fh 1025x3 1025x3 dim=0",
           "f 3x33000 3x33000 dim=1", "fh 3x5x7 3x5x7 dim=1",
           "fhb 2x3{1,2,3,4,5,6} 2x3{1,0,2,0,1,0} dim=1", "fhb 33x7 33x7 dim=1 forth=1",
           "f 3x33000 3x33000 dim=1 forth=1", "fh 3x5x7 3x5x7 dim=1 forth=1",
           "f 2x3{1,2,3,4,5,6} 2x3{inf,0,2,nan,1,0} dim=1 forth=1"),
     GRADIENTS("fhb 5x7~n 5x7~n dim=1", "f 3x4x2~n 3x4x2~n dim=1 forth=1", "f 5x1~n 5x1~n dim=1")},
    {OP_sort_order, "w", "l", FIRST(reference_sort_order), EXACT,
     CASES("fhb 33x7 dim=1", "fhb 33x7 dim=0 descending=1", "fh 3x33x5 dim=1",
           "f 7x1025 dim=1 descending=1", "h 3x512 dim=1", "f 1x4099 dim=1", "f 1 dim=0",
           "f 5x2 dim=1", "iluo 7x33 dim=1", "i 9x33 dim=1 descending=1",
           /* ties keep their order in both directions; zeros of both signs, NaN, infinities */
           "fhb 4x5{1,2,1,2,1,0,-0.0,-0.0,0,-1,nan,1,nan,inf,-inf,3,3,3,3,3} dim=1",
           "fhb 4x5{1,2,1,2,1,0,-0.0,-0.0,0,-1,nan,1,nan,inf,-inf,3,3,3,3,3} dim=1 descending=1")},
    {OP_pick_ordered, "w", "=", MOVE(pick_ordered, shape_of_second), EXACT,
     CASES("fhb 2x3 l:2x3{2,0,1,1,2,0} dim=1", "fhb 3x5 l:2x5{2,0,1,1,2,0,1,0,2,1} dim=0",
           "fh 2x3x2 l:2x1x2{2,0,1,1} dim=1", "ilu 2x3 l:2x2{2,0,1,2} dim=1"),
     GRADIENTS("fhb 2x3 l:2x3{2,0,1,1,2,0} dim=1", "f 3x4 l:2x4{2,0,1,0,0,2,0,1} dim=0"),
     CHAINS({"o = slice(sort_order(a, dim=1, descending=1), dim=1, start=0, stop=2); "
             "pick_ordered(a, o, dim=1) * slice(a, dim=1, start=0, stop=2)",
             "fhb 3x4{1,4,2,3,9,8,6,7,-1,-4,-3,2} 3x2~d"})},
    {OP_place_ordered, "d", "=", WHOLE(shape_sized_of, reference_place_ordered), EXACT,
     CASES("fhb 2x3 l:2x3{2,0,1,1,2,0} dim=1 size=3", "fhb 2x3 l:2x3{4,0,1,1,6,0} dim=1 size=7",
           "fh 2x1x2 l:2x1x2{2,0,1,1} dim=1 size=300"),
     GRADIENTS("fhb 2x3 l:2x3{4,0,1,1,6,0} dim=1 size=7",
               "f 2x2x2 l:2x2x2{2,0,1,1,0,2,2,0} dim=1 size=3")},
};
FAMILY(along)
