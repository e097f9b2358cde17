/* Ops that read or add elements at given indices. */
#include "entry.h"

static void shape_selected(const Case *t, Tensor *y)
{
  const Tensor *x = &t->in[0], *index = &t->in[1];
  uint32_t axis = (uint32_t)case_int(t, "axis");
  y->rank = 0;
  for (uint32_t i = 0; i < x->rank; i++) {
    for (uint32_t k = 0; i == axis && k < index->rank; k++) y->dim[y->rank++] = index->dim[k];
    if (i != axis) y->dim[y->rank++] = x->dim[i];
  }
}

/* Computes rows with one element of x for each index. An index outside of the row yields NaN, or 0
 * for integers. */
static void reference_selected(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0], *index = &t->in[1];
  Rows r = rows_of(x, (int)case_int(t, "axis")), to = r;
  to.length = index->n;
  while (next_row(&r) && next_row(&to))
    for (int64_t k = 0; k < index->n; k++) {
      double from = index->at[k];
      bool there = from >= 0 && from < (double)r.length;
      y->at[to.start + k * to.stride] = there ? x->at[r.start + (int64_t)from * r.stride]
                                        : dtype_is_float(y->dtype) ? NAN
                                                                   : 0;
    }
  scale_as_size(y, scale);
}

static void reference_row_sums(const Case *t, Tensor *y, double *scale)
{
  const Tensor *dy = &t->in[0], *index = &t->in[1];
  int64_t columns = dy->n / dy->dim[0];
  clear_sums(y, scale);
  for (int64_t k = 0; k < index->n; k++) {
    double row = index->at[k];
    if (row < 0 || row >= case_attr(t, "size") || row == case_attr(t, "padding")) continue;
    for (int64_t i = 0; i < columns; i++) {
      y->at[(int64_t)row * columns + i] += dy->at[k * columns + i];
      scale[(int64_t)row * columns + i] += fabs(dy->at[k * columns + i]);
    }
  }
}

static double terms_of_index(const Case *t)
{
  return (double)t->in[1].n * PARTIAL_SUMS;
}

static bool moved_gather(const Case *t, int64_t i, int64_t *at)
{
  double row = t->in[1].at[i];
  at[case_axis(t)] = (int64_t)row;
  return row >= 0 && row < (double)t->in[0].dim[case_axis(t)];
}

static void reference_scattered(const Case *t, Tensor *y, double *scale)
{
  const Tensor *src = &t->in[0], *index = &t->in[1], *x = &t->in[2];
  int reduce = (int)case_int(t, "reduce");
  Rows to = rows_of(y, case_axis(t));
  for (int64_t j = 0; j < y->n; j++) y->at[j] = x->present ? x->at[j] : 0;
  scale_as_size(y, scale);
  for (Rows r = rows_of(src, case_axis(t)); next_row(&r) && next_row(&to);)
    EACH (j, r) {
      if (index->at[j] < 0 || index->at[j] >= (double)to.length) continue;
      int64_t i = to.start + (int64_t)index->at[j] * to.stride;
      double had = y->at[i], v = src->at[j];
      y->at[i] = reduce == 0   ? had + v
                 : reduce == 1 ? had * v
                 : reduce == 2 ? fmax(had, v)
                               : fmin(had, v);
      scale[i] = reduce ? fabs(y->at[i]) : scale[i] + fabs(v);
    }
}

static double terms_of_places(const Case *t)
{
  return (double)t->in[1].dim[case_axis(t)] * PARTIAL_SUMS;
}

/* Adds the weighted products of one sum of weighted_gather, and of its gradients: the terms of x,
 * weight and dy with the same sample, channel, tap and place. */
static void reference_weighted(const Case *t, Tensor *y, double *scale)
{
  const Tensor *place = &t->in[2];
  bool gathers = t->test->op == OP_weighted_gather, scatters = t->test->op == OP_weighted_scatter;
  int64_t taps = place->dim[1], places = place->dim[2], channels = t->in[0].dim[1];
  int64_t size = gathers ? t->in[0].dim[2] : scatters ? y->dim[2] : t->in[1].dim[2];
  clear_sums(y, scale);
  for (int64_t i = 0; i < place->n * channels; i++) {
    int64_t w = i / channels, p = w % places, n = w / places / taps;
    int64_t line = n * channels + i % channels;
    if (place->at[w] < 0 || place->at[w] >= (double)size) continue;
    int64_t at = line * size + (int64_t)place->at[w], out = line * places + p;
    double v = gathers    ? t->in[0].at[at] * t->in[1].at[w]
               : scatters ? t->in[0].at[out] * t->in[1].at[w]
                          : t->in[0].at[out] * t->in[1].at[at];
    int64_t to = gathers ? out : scatters ? at : w;
    y->at[to] += v;
    scale[to] += fabs(v);
  }
}

static void shape_gathered(const Case *t, Tensor *y)
{
  *y = (Tensor){.rank = 3, .dim = {t->in[0].dim[0], t->in[0].dim[1], t->in[2].dim[2]}};
}

static void shape_placed(const Case *t, Tensor *y)
{
  *y = (Tensor){.rank = 3, .dim = {t->in[0].dim[0], t->in[0].dim[1], case_int(t, "size")}};
}

static void shape_third(const Case *t, Tensor *y)
{
  y->rank = t->in[2].rank;
  for (uint32_t i = 0; i < y->rank; i++) y->dim[i] = t->in[2].dim[i];
}

static double terms_of_weights(const Case *t)
{
  return (double)(t->in[2].dim[1] * t->in[2].dim[2] + t->in[0].dim[1]) * PARTIAL_SUMS;
}

static const OpTest tests[] = {
    {OP_index_select, "ww", "=", WHOLE(shape_selected, reference_selected), EXACT,
     CASES("fhbiluo 7x33 i:5{0,6,3,3,1} axis=0", "fhb 7x5 l:2x3{0,6,3,3,1,2} axis=0",
           "fh 3x7x5 u:2x2{6,0,0,2} axis=1", "fb 3x7 l:4{0,6,3,3} axis=1",
           "fhbiluo 7x3 l:s{4} axis=0",
           /* indices outside of x: NaN, or 0 for integers */
           "fhbiluo 7x3 i:4{-1,7,2147483647,6} axis=0",
           "fl 7x3 l:4{-9223372036854775807,4294967296,7,0} axis=0",
           "fh 1025x7 i:3{1024,0,1023} axis=0"),
     GRADIENTS("fhb 4x3~n i:5{0,3,3,1,0} axis=0", "fhb 2x4x3~n l:2x2{3,0,1,3} axis=1",
               "f 2x3~n l:4{2,0,1,2} axis=1"),
     CHAINS(/* row sums that are added to another gradient */
            {"gemm(index_select(a, b) * exp(index_select(a, b)), a, trans_b=1)",
             "fhb 4x3~n i:5{0,3,3,1,2} 5x4~d"})},
    {OP_index_select_backward, "sw", "f", WHOLE(shape_sized_of, reference_row_sums),
     SUMMED(0.5, 0.5, terms_of_index, "a sum in the order of the index"),
     CASES("fhb 5x33 i:5{0,6,3,3,1} size=7", "fh 5x3x7 l:5{0,6,3,3,6} size=9",
           "fb 6x5 i:6{0,-1,3,9,1,2} size=9 padding=3", "f 6x1 l:6{0,1,3,4294967296,1,2} size=1025",
           "f 33x130 u:33 size=255",
           /* runs of one row, several tiles of columns, several lists */
           "fhb 12x5 l:12{5,5,5,5,5,5,5,5,5,5,2,5} size=7", "f 3x2050 i:3{1,0,1} size=2",
           "fb 4100x3 u:4100 size=200", "f 2049x130 u:2049 size=200 padding=9"),
     GRADIENTS("fhb 5x3 i:5{0,3,3,1,2} size=4", "f 6x2x2 i:6{0,2,3,3,1,2} size=5 padding=3")},
    {OP_gather, "ww", "=", PICK(gather, shape_of_second), EXACT,
     CASES("fhbiluo 3x7 l:3x2{0,6,3,3,1,2} dim=1", "fhb 3x5 i:2x5{0,2,1,2,0,0,0,2,1,1} dim=0",
           "fh 2x3x2 l:2x2x2{0,2,1,2,0,0,1,1} dim=1",
           "fhbiluo 2x3 i:2x3{-1,3,0,2147483647,1,2} dim=1"),
     GRADIENTS("fhb 3x4~n l:3x2{0,3,3,3,1,2} dim=1",
               "f 2x3x2~n l:2x4x2{0,2,1,2,0,0,1,1,0,0,0,0,2,2,2,2} dim=1")},
    {OP_scatter, "sws", "f", WHOLE(shape_sized_of, reference_scattered),
     SUMMED(0.5, 0.5, terms_of_places, "a sum or product in the order of the index"),
     CASES("fhb 3x2 l:3x2{0,6,3,3,1,2} - dim=1 size=7",
           "fhb 3x5 l:3x5{0,6,3,3,1,2,2,2,2,0,5,4,3,5,5} 3x7 dim=1 size=7 reduce=1",
           "fhb 3x5 l:3x5{0,6,3,3,1,2,2,2,2,0,5,4,3,5,5} 3x7 dim=1 size=7 reduce=2",
           "fhb 5x3 i:5x3{0,6,3,3,1,2,2,2,2,0,5,4,3,5,7} 7x3 dim=0 size=7 reduce=3",
           "f 5x131 u:5x131 65x131 dim=0 size=65", "f 1x513 u:1x513 1x70 dim=1 size=70",
           "fhb 3x2 l:3x2{0,6,3,3,1,2} 3x7 dim=1 size=7",
           "fh 4x5 i:4x5{0,2,1,2,0,0,0,2,1,1,0,2,1,2,0,0,0,2,1,1} 3x5 dim=0 size=3",
           "fb 2x4x3 u:2x4x3{0,2,1,2,0,0,0,2,1,1,0,2,1,2,0,0,0,2,1,1,0,0,1,2} - dim=1 size=3",
           "f 2x3 i:2x3{-1,3,0,2147483647,1,2} 2x3 dim=1 size=3"),
     GRADIENTS("fhb 3x2~n l:3x2{0,3,3,3,1,2} 3x4~n dim=1 size=4",
               "f 3x2~n l:3x2{0,3,3,3,1,2} - dim=1 size=4")},
    {OP_weighted_gather, "ssw", "f", WHOLE(shape_gathered, reference_weighted),
     SUMMED(1, 0.5, terms_of_weights, "a product, and a sum in the order of the taps"),
     CASES("f 2x3x7 2x2x5 i:2x2x5{0,6,3,3,1,2,-1,7,5,4,0,6,3,3,1,2,2147483647,0,5,4}",
           "f 1x3x200 1x5x131 u:1x5x131", "fhb 3x1x9 3x1x1 l:3x1x1{8,0,9}"),
     GRADIENTS("f 2x3x4~n 2x2x3~n i:2x2x3{0,3,3,3,1,2,2,1,0,0,-1,4}")},
    {OP_weighted_scatter, "ssw", "f", WHOLE(shape_placed, reference_weighted),
     SUMMED(1, 0.5, terms_of_weights, "a product, and a sum in the order of the index"),
     CASES("f 2x3x5 2x2x5 i:2x2x5{0,6,3,3,1,2,-1,7,5,4,0,6,3,3,1,2,2147483647,0,5,4} size=7",
           "f 1x3x131 1x5x131 u:1x5x131 size=200", "f 1x1x1 1x3x1 l:1x3x1{8,8,9} size=9"),
     GRADIENTS("f 2x3x3~n 2x2x3~n i:2x2x3{0,3,3,3,1,2,2,1,0,0,-1,4} size=4")},
    {OP_weighted_products, "ssw", "f", WHOLE(shape_third, reference_weighted),
     SUMMED(1, 0.5, terms_of_weights, "a product, and a sum over the channels"),
     CASES("f 2x3x5 2x3x7 i:2x2x5{0,6,3,3,1,2,-1,7,5,4,0,6,3,3,1,2,2147483647,0,5,4}",
           "f 1x33x131 1x33x200 u:1x5x131"),
     GRADIENTS("f 2x3x3~n 2x3x4~n i:2x2x3{0,3,3,3,1,2,2,1,0,0,-1,4}")},
};
FAMILY(indices)
