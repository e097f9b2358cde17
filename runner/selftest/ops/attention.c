/* Attention: the reference computes the weights of each query from all of its scores. */
#include "entry.h"

enum { QUERY, KEY, VALUE, MASK, DY, LOG_SUMS, OFF };

/* One query of one head and one key, as indices into the operands: q is [n, l, heads, d]. If keys
 * have fewer heads, adjacent heads of queries share one. */
typedef struct Pair {
  const Case *t;
  int64_t image, head, query, key;
} Pair;

static const double *row_of(const Tensor *x, int64_t image, int64_t i, int64_t head)
{
  return x->at + ((image * x->dim[1] + i) * x->dim[2] + head) * x->dim[3];
}

static int64_t head_of_key(const Pair *p)
{
  return p->head * p->t->in[KEY].dim[2] / p->t->in[QUERY].dim[2];
}

static const double *operand(const Pair *p, uint32_t input)
{
  bool of_query = input == QUERY || input == DY;
  return row_of(&p->t->in[input], p->image, of_query ? p->query : p->key,
                of_query ? p->head : head_of_key(p));
}

/* Returns an element of the mask [n, heads, l, s], whose axes may have size 1. */
static double mask_at(const Pair *p)
{
  const Tensor *m = &p->t->in[MASK];
  const int64_t at[] = {p->image, p->head, p->query, p->key};
  int64_t index = 0;
  for (uint32_t i = 0; i < 4; i++) index = index * m->dim[i] + (m->dim[i] == 1 ? 0 : at[i]);
  return m->at[index];
}

static double inner(const double *x, const double *y, int64_t n, double *size)
{
  double sum = 0;
  *size = 0;
  for (int64_t i = 0; i < n; i++) {
    sum += x[i] * y[i];
    *size += fabs(x[i] * y[i]);
  }
  return sum;
}

/* Returns the score of a pair. Sets *size to the sum of the absolute values of its terms. */
static double score_of(const Pair *p, double *size)
{
  const Case *t = p->t;
  double factor = case_attr(t, "scale");
  double s = factor * inner(operand(p, QUERY), operand(p, KEY), t->in[QUERY].dim[3], size);
  *size *= fabs(factor);
  if (case_attr(t, "causal") != 0 && p->key > p->query) return -INFINITY;
  if (!t->in[MASK].present) return s;
  if (t->in[MASK].dtype == AMPC_BOOL) return mask_at(p) != 0 ? s : -INFINITY;
  *size += isinf(mask_at(p)) ? 0 : fabs(mask_at(p));
  return s + mask_at(p);
}

/* Returns the log of the sum of e^score, and in *size the largest size of a score. Returns infinity
 * for a query that attends to no key, so that its weights are 0. */
static double log_sum_of(Pair p, double *size)
{
  double most = -INFINITY, sum = 0, own;
  *size = 0;
  for (p.key = 0; p.key < p.t->in[KEY].dim[1]; p.key++) {
    most = fmax(most, score_of(&p, &own));
    *size = fmax(*size, own);
  }
  if (isinf(most)) return INFINITY;
  for (p.key = 0; p.key < p.t->in[KEY].dim[1]; p.key++) sum += exp(score_of(&p, &own) - most);
  return most + log(sum);
}

static void shape_attention_of(const Case *t, Tensor *y)
{
  shape_of_first(t, y);
  if (case_attr(t, "sums") != 0)
    y->rank = 3;
  else
    y->dim[3] = t->in[VALUE].dim[3];
}

/* Computes attention. An absolute error of a score is a relative error of its weight, so scales
 * grow with the scores. */
static void reference_attention(const Case *t, Tensor *y, double *scale)
{
  const Tensor *q = &t->in[QUERY], *v = &t->in[VALUE];
  for (int64_t i = 0; i < q->dim[0] * q->dim[1] * q->dim[2]; i++) {
    Pair p = {t, i / q->dim[2] / q->dim[1], i % q->dim[2], i / q->dim[2] % q->dim[1], 0};
    double size, own, log_sum = log_sum_of(p, &size);
    if (case_attr(t, "sums") != 0) {
      y->at[i] = log_sum;
      scale[i] = 1 + size;
      continue;
    }
    for (int64_t c = 0; c < v->dim[3]; c++) {
      double *sum = &y->at[i * v->dim[3] + c], *of = &scale[i * v->dim[3] + c];
      *sum = *of = 0;
      for (p.key = 0; p.key < v->dim[1]; p.key++) {
        double weight = exp(score_of(&p, &own) - log_sum), x = operand(&p, VALUE)[c];
        *sum += weight * x;
        *of += (1 + size) * weight * fabs(x);
      }
    }
  }
}

static void shape_attention_back(const Case *t, Tensor *y)
{
  const Tensor *x = &t->in[case_int(t, "of")];
  y->rank = x->rank;
  for (uint32_t i = 0; i < x->rank; i++) y->dim[i] = x->dim[i];
}

/* Adds the contribution of a pair to the gradient of its query, key or value. Inputs LOG_SUMS and
 * OFF replace the sums over all keys, as in the kernels: the weight is e^(score - LOG_SUMS), and
 * OFF is subtracted from the gradient of the weight. */
static void add_pair(const Pair *p, Tensor *y, double *scale)
{
  const Case *t = p->t;
  const Tensor *q = &t->in[QUERY];
  int64_t of = case_int(t, "of"), d = y->dim[3];
  int64_t row = (p->image * q->dim[1] + p->query) * q->dim[2] + p->head;
  double size, slope_size, factor = case_attr(t, "scale");
  double weight = exp(score_of(p, &size) - t->in[LOG_SUMS].at[row]);
  double slope = inner(operand(p, DY), operand(p, VALUE), t->in[VALUE].dim[3], &slope_size);
  const double *with = operand(p, of == QUERY ? KEY : of == KEY ? QUERY : DY);
  double share = of == VALUE ? weight : factor * weight * (slope - t->in[OFF].at[row]);
  double bound = of == VALUE ? weight : factor * weight * (slope_size + fabs(t->in[OFF].at[row]));
  int64_t head = of == QUERY ? p->head : head_of_key(p);
  int64_t at = (p->image * y->dim[1] + (of == QUERY ? p->query : p->key)) * y->dim[2] + head;
  for (int64_t c = 0; c < d; c++) {
    y->at[at * d + c] += share * with[c];
    scale[at * d + c] += (1 + size) * fabs(bound * with[c]);
  }
}

static void reference_attention_back(const Case *t, Tensor *y, double *scale)
{
  const Tensor *q = &t->in[QUERY], *k = &t->in[KEY];
  clear_sums(y, scale);
  for (int64_t i = 0; i < q->dim[0] * q->dim[1] * q->dim[2]; i++) {
    Pair p = {t, i / q->dim[2] / q->dim[1], i % q->dim[2], i / q->dim[2] % q->dim[1], 0};
    for (p.key = 0; p.key < k->dim[1]; p.key++) add_pair(&p, y, scale);
  }
}

/* Returns the number of terms: features of a score and of a slope, then the terms of a result. The
 * gradients of keys and values are sums over the queries of a group of heads. */
static double terms_of_attention(const Case *t)
{
  const Tensor *q = &t->in[QUERY], *v = &t->in[VALUE];
  int64_t queries = q->dim[1] * q->dim[2] / v->dim[2];
  int64_t most = queries > v->dim[1] ? queries : v->dim[1];
  return (double)(q->dim[3] + v->dim[3] + most);
}

#define FORWARD WHOLE(shape_attention_of, reference_attention)
#define BACK    WHOLE(shape_attention_back, reference_attention_back)
#define BOUND   SUMMED(8, 0.5, terms_of_attention, "additions in a row; exponential, quotient")

static const OpTest tests[] = {
    {OP_attention, "nnnn", "=", FORWARD, BOUND, .narrow = true,
     CASES("fhb 2x5x3x8 2x7x3x8 2x7x3x5 - scale=0.35",
           /* several tiles and steps, with a partial last one */
           "fhb 1x131x2x33 1x70x2x33 1x70x2x40 - scale=0.2",
           "fhb 1x70x2x8 1x131x2x8 1x131x2x8 - scale=0.3 causal=1",
           "fh 1x131x1x8 1x70x1x8 1x70x1x8 - scale=0.3 causal=1",
           "fhb 2x33x2x8 2x37x2x8 2x37x2x8 o:2x1x1x37~c scale=0.3",
           "fhb 2x33x2x8 2x37x2x8 2x37x2x8 o:1x1x33x37~c scale=0.3 causal=1",
           "fhb 2x33x2x8 2x37x2x8 2x37x2x8 1x2x33x37 scale=0.3",
           "fh 2x3x2x8 2x5x2x8 2x5x2x8 2x2x1x1 scale=0.3",
           /* the second query first attends to no key, then only to the last one */
           "fhb 1x2x1x3 1x2x1x3 1x2x1x3 o:1x1x2x2{1,1,0,0} scale=1",
           "fhb 1x2x1x3 1x34x1x3 1x34x1x3 "
           "1x1x1x34{-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-"
           "inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-inf,-"
           "inf,1} scale=1",
           "fh 1x1x1x1 1x1x1x1 1x1x1x1 - scale=1",
           "fb 1x20x1x128 1x35x1x128 1x35x1x64 - scale=0.05",
           "f 1x9x1x256 1x17x1x256 1x17x1x256 - scale=0.02",
           "fhb 2x70x2x8 2x37x2x8 2x37x2x8 - scale=0.3 sums=1 result=f",
           /* groups of heads share keys and values */
           "fhb 2x33x4x8 2x70x2x8 2x70x2x5 - scale=0.3 causal=1",
           "fhb 2x5x6x8 2x37x1x8 2x37x1x8 o:2x6x1x37~c scale=0.3",
           "f 1x20x6x9 1x7x2x9 1x7x2x33 1x6x20x7 scale=0.3 sums=1",
           "f 1x2x1x3 1x2x1x3 1x2x1x3 o:1x1x2x2{1,1,0,0} scale=1 sums=1 result=f"),
     GRADIENTS("fhb 2x3x2x4 2x5x2x4 2x5x2x3 - scale=0.35",
               "f 1x5x2x4 1x3x2x4 1x3x2x4 - scale=0.35 causal=1",
               /* cuDNN computes these if it is present; with dropout or a mask, if AMPC_ATTENTION
                * lets it */
               "hb 1x5x2x8 1x3x2x8 1x3x2x16 - scale=0.35 causal=1",
               "hb 2x3x2x8 2x5x2x8 2x5x2x8 - scale=0.35",
               "hb 1x4x2x8 1x5x2x8 1x5x2x8 - scale=0.4 p=0.4",
               "hb 1x4x1x8 1x128x1x8 1x128x1x8 - scale=0.4 p=0.4",
               "hb 1x4x1x8 1x128x1x8 1x128x1x8 o:1x1x1x128~c scale=0.4",
               "hb 2x3x2x8 2x5x2x8 2x5x2x8 o:2x1x1x5{1,1,0,1,1,0,0,0,0,0} scale=0.4",
               "fhb 2x3x2x4 2x5x2x4 2x5x2x4 o:2x1x1x5{1,1,0,1,1,1,0,1,1,1} scale=0.4",
               "f 1x2x1x4 1x5x1x4 1x5x1x3 o:1x1x2x5{1,1,0,1,1,0,0,0,0,0} scale=0.4",
               "fhb 2x3x2x2 2x3x2x2 2x3x2x2 1x2x3x3 scale=0.4",
               "f 2x3x2x2 2x3x2x2 2x3x2x2 2x1x1x3 scale=0.4",
               /* forward, backward and the mask's gradient must use the same dropout */
               "fhb 1x4x2x3 1x5x2x3 1x5x2x3 1x2x4x5 scale=0.4 p=0.4",
               "f 1x40x1x2 1x70x1x2 1x70x1x2 - scale=0.4 p=0.2 causal=1",
               "fhb 2x3x4x4 2x5x2x4 2x5x2x3 - scale=0.35 causal=1",
               "fhb 1x4x6x3 1x5x2x3 1x5x2x3 1x6x4x5 scale=0.4 p=0.4",
               "hb 1x4x6x8 1x5x1x8 1x5x1x8 o:1x6x1x5~c scale=0.4",
               "f 1x5x4x2 1x70x2x2 1x70x2x2 - scale=0.4 p=0.2",
               /* masks with a row for each image, query or head, and one row for all queries */
               "h 2x2x2x8 2x128x2x8 2x128x2x8 o:2x1x1x128~c scale=0.4 p=0.1",
               "b 2x2x2x8 2x197x2x8 2x197x2x8 o:2x2x1x197~c scale=0.4",
               "b 2x2x2x8 2x197x2x8 2x197x2x8 o:2x1x2x197~c scale=0.4 p=0.4",
               "h 1x3x2x8 1x256x2x8 1x256x2x8 o:1x2x3x256~c scale=0.4",
               "b 2x9x2x8 2x9x2x8 2x9x2x8 - scale=0.4 p=0.4 causal=1",
               /* a query of each image attends to no key */
               "h 2x2x2x8 2x5x2x8 2x5x2x8 o:2x1x2x5{1,1,0,1,1,0,0,0,0,0,0,0,0,0,0,1,0,1,1,1} "
               "scale=0.4 p=0.1")},
    {OP_attention_backward, "dddddvd", "f", BACK, BOUND, .narrow = true,
     CASES("fhb 2x5x3x8 2x7x3x8 2x7x3x5 - 2x5x3x5 f:2x5x3 f:2x5x3 scale=0.35 of=0",
           "fhb 2x5x3x8 2x7x3x8 2x7x3x5 - 2x5x3x5 f:2x5x3 f:2x5x3 scale=0.35 of=1",
           "fhb 2x5x3x8 2x7x3x8 2x7x3x5 - 2x5x3x5 f:2x5x3 f:2x5x3 scale=0.35 of=2",
           "fhb 1x131x1x9 1x70x1x9 1x70x1x33 - 1x131x1x33 f:1x131x1 f:1x131x1 scale=0.3 of=0",
           "fhb 1x131x1x9 1x70x1x9 1x70x1x33 - 1x131x1x33 f:1x131x1 f:1x131x1 scale=0.3 of=1",
           "fhb 1x131x1x9 1x70x1x9 1x70x1x33 - 1x131x1x33 f:1x131x1 f:1x131x1 scale=0.3 of=2",
           "f 1x70x1x8 1x131x1x8 1x131x1x8 - 1x70x1x8 f:1x70x1 f:1x70x1 scale=0.3 causal=1 of=0",
           "f 1x70x1x8 1x131x1x8 1x131x1x8 - 1x70x1x8 f:1x70x1 f:1x70x1 scale=0.3 causal=1 of=1",
           "fh 1x70x1x8 1x131x1x8 1x131x1x8 - 1x70x1x8 f:1x70x1 f:1x70x1 scale=0.3 causal=1 of=2",
           "hb 1x70x1x8 1x70x1x8 1x70x1x8 - 1x70x1x8 f:1x70x1 f:1x70x1 scale=0.3 causal=1 "
           "rounded=1 of=0 result==",
           "hb 1x70x1x8 1x70x1x8 1x70x1x8 - 1x70x1x8 f:1x70x1 f:1x70x1 scale=0.3 causal=1 "
           "rounded=1 of=1 result==",
           "fhb 2x5x2x8 2x7x2x8 2x7x2x5 o:2x1x5x7~c 2x5x2x5 f:2x5x2 f:2x5x2 scale=0.35 of=0",
           "fhb 2x5x2x8 2x7x2x8 2x7x2x5 2x2x1x7 2x5x2x5 f:2x5x2 f:2x5x2 scale=0.35 of=1",
           "f 1x20x1x128 1x35x1x128 1x35x1x128 - 1x20x1x128 f:1x20x1 f:1x20x1 scale=0.05 of=0",
           "f 1x20x1x128 1x35x1x128 1x35x1x128 - 1x20x1x128 f:1x20x1 f:1x20x1 scale=0.05 of=1",
           "f 1x9x1x256 1x17x1x256 1x17x1x256 - 1x9x1x256 f:1x9x1 f:1x9x1 scale=0.02 of=2",
           "fhb 2x33x4x8 2x70x2x8 2x70x2x5 - 2x33x4x5 f:2x33x4 f:2x33x4 scale=0.3 causal=1 of=0",
           "fhb 2x70x4x8 2x70x2x8 2x70x2x5 - 2x70x4x5 f:2x70x4 f:2x70x4 scale=0.3 causal=1 of=1",
           "fhb 2x70x4x8 2x70x2x8 2x70x2x5 - 2x70x4x5 f:2x70x4 f:2x70x4 scale=0.3 causal=1 of=2",
           "fhb 1x5x6x8 1x7x1x8 1x7x1x5 o:1x6x5x7~c 1x5x6x5 f:1x5x6 f:1x5x6 scale=0.3 of=1",
           "hb 1x70x6x8 1x9x2x8 1x9x2x8 1x6x1x9 1x70x6x8 f:1x70x6 f:1x70x6 scale=0.3 rounded=1 "
           "of=2 result==")},
};
FAMILY(attention)
