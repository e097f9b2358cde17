/* Computes initial values: the distributions of torch.nn.init, drawn from Philox. They depend only
 * on the seed, the parameter's path and its shape. */
#include "init_values.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "runtime/base/philox.h"

typedef struct Draw { /* a sequence of random numbers */
  uint64_t seed, stream;
} Draw;

/* ---- element by element ---- */

/* Draws normal numbers until one is within the bounds. If the bounds are too far out in a tail,
 * returns the bound nearer to the mean. */
static double truncated(const ampc_init *init, Draw d, uint64_t i)
{
  enum { TRIES = 1000 };
  for (uint64_t k = 0; k < TRIES; k++) {
    double v = init->a + init->b * philox_normal(d.seed, d.stream + k, i);
    if (v >= init->low && v <= init->high) return v;
  }
  return fabs(init->low - init->a) < fabs(init->high - init->a) ? init->low : init->high;
}

/* Returns an element of a convolution that returns its input, in each of `a` groups of channels. */
static double dirac(const ampc_param *p, int64_t i)
{
  int64_t own = p->dim[0] / (int64_t)p->init.a, field = 1, centre = 0;
  for (uint32_t k = 2; k < p->rank; k++) {
    field *= p->dim[k];
    centre = centre * p->dim[k] + p->dim[k] / 2;
  }
  int64_t from = i / field % p->dim[1], to = i / field / p->dim[1];
  return i % field == centre && to % own == from && to / own < (int64_t)p->init.a;
}

/* Returns element i of an initialiser whose elements do not depend on each other. */
static double element(const ampc_param *p, Draw d, int64_t i)
{
  const ampc_init *init = &p->init;
  switch (init->kind) {
  case AMPC_INIT_UNIFORM:
    return init->a + (init->b - init->a) * philox_uniform(d.seed, d.stream, (uint64_t)i);
  case AMPC_INIT_NORMAL:
    return init->a + init->b * philox_normal(d.seed, d.stream, (uint64_t)i);
  case AMPC_INIT_TRUNC_NORMAL:
    return truncated(init, d, (uint64_t)i);
  case AMPC_INIT_EYE:
    return i / p->dim[1] == i % p->dim[1];
  case AMPC_INIT_DIRAC:
    return dirac(p, i);
  case AMPC_INIT_PADDED:
    return i / p->dim[1] == (int64_t)init->a ? 0 : philox_normal(d.seed, d.stream, (uint64_t)i);
  default:
    return init->a;
  }
}

/* ---- as a whole ---- */

/* Gram-Schmidt makes the vectors of a matrix orthogonal one after the other. TOGETHER vectors are
 * processed at a time and stored interleaved, so that one pass over a finished vector subtracts it
 * from all of them. A pass that subtracts one vector also computes the dot products with the next
 * one, because memory limits the speed. The first pass subtracts 0 times a vector. */
enum { TOGETHER = 8, PAIRS = TOGETHER / 2 };
typedef double Pair __attribute__((vector_size(16), aligned(8), may_alias));
typedef struct Dots {
  Pair of[PAIRS];
} Dots;

/* Subtracts its dot product times q from each of the interleaved vectors. Returns their dot
 * products with `next`. */
static Dots take_from_all(double *some, const double *q, Dots dot, const double *next, int64_t size)
{
  Dots sum = {{{0}}};
  for (int64_t i = 0; i < size; i++)
    for (int k = 0; k < PAIRS; k++) {
      Pair *at = (Pair *)(some + i * TOGETHER) + k;
      *at -= dot.of[k] * q[i];
      sum.of[k] += *at * next[i];
    }
  return sum;
}

/* Subtracts dot times q from v. Returns the dot product of v and `next`, as several independent
 * sums that are added at the end. */
static double take(double *v, const double *q, double dot, const double *next, int64_t size)
{
  Dots part = {{{0}}};
  int64_t whole = size - size % TOGETHER;
  for (int64_t i = 0; i < whole; i += TOGETHER)
    for (int k = 0; k < PAIRS; k++) {
      Pair *at = (Pair *)(v + i) + k;
      *at -= dot * ((const Pair *)(q + i))[k];
      part.of[k] += *at * ((const Pair *)(next + i))[k];
    }
  double sum = 0;
  for (int64_t i = whole; i < size; i++) {
    v[i] -= dot * q[i];
    sum += v[i] * next[i];
  }
  for (int k = 0; k < TOGETHER; k++) sum += part.of[k / 2][k % 2];
  return sum;
}

static void normalise(double *v, int64_t size)
{
  double norm = 0;
  for (int64_t i = 0; i < size; i++) norm += v[i] * v[i];
  for (int64_t i = 0; i < size; i++) v[i] /= sqrt(norm);
}

/* Finishes vector k of v, whose components along the vectors before `first` were subtracted before.
 * Subtracts its components along the others before it, then all components a second time because of
 * rounding. */
static void finish(double *v, int64_t first, int64_t k, int64_t size)
{
  const double *q = v;
  double dot = 0;
  for (int64_t n = first; n < 2 * k; n++) {
    const double *next = v + (n < k ? n : n - k) * size;
    dot = take(v + k * size, q, dot, next, size);
    q = next;
  }
  take(v + k * size, q, dot, q, size);
  normalise(v + k * size, size);
}

/* Makes `count` vectors v of `size` elements orthogonal. some: memory for TOGETHER of them. */
static void make_orthogonal(double *v, double *some, int64_t count, int64_t size)
{
  for (int64_t first = 0; first < count; first += TOGETHER) {
    int64_t n = count - first < TOGETHER ? count - first : TOGETHER;
    for (int64_t i = 0; i < size; i++)
      for (int64_t k = 0; k < TOGETHER; k++)
        some[i * TOGETHER + k] = k < n ? v[(first + k) * size + i] : 0;
    Dots dot = {{{0}}};
    for (int64_t j = 0; j <= first; j++) {
      const double *q = v + (j > 0 ? j - 1 : 0) * size;
      dot = take_from_all(some, q, dot, j < first ? v + j * size : q, size);
    }
    for (int64_t k = 0; k < n; k++)
      for (int64_t i = 0; i < size; i++) v[(first + k) * size + i] = some[i * TOGETHER + k];
    for (int64_t k = first; k < first + n; k++) finish(v, first, k, size);
  }
}

/* Computes Q of the QR decomposition of a matrix [first axis, all others] of normal numbers, with
 * R's diagonal positive, times a. Vectors run along the longer side. False: out of memory. */
static bool orthogonal(const ampc_param *p, Draw d, double *out)
{
  int64_t rows = p->dim[0], columns = p->elements / rows;
  bool wide = rows < columns;
  int64_t count = wide ? rows : columns, size = wide ? columns : rows;
  /* steps to the next vector, element */
  int64_t next = wide ? columns : 1, step = wide ? 1 : columns;
  double *v = malloc((size_t)((count + TOGETHER) * size) * sizeof *v);
  if (!v) return false;
  for (int64_t k = 0; k < count; k++)
    for (int64_t i = 0; i < size; i++)
      v[k * size + i] = philox_normal(d.seed, d.stream, (uint64_t)(k * next + i * step));
  make_orthogonal(v, v + count * size, count, size);
  for (int64_t k = 0; k < count; k++)
    for (int64_t i = 0; i < size; i++) out[k * next + i * step] = v[k * size + i] * p->init.a;
  free(v);
  return true;
}

/* ---- from the values of another parameter ---- */

/* The elements of a weight as a matrix [axis, all others]; the weight is [before, rows, after]. */
typedef struct Matrix {
  double *at;
  int64_t rows, columns, after;
} Matrix;

static double *element_of(const Matrix *m, int64_t row, int64_t column)
{
  return m->at + (column / m->after * m->rows + row) * m->after + column % m->after;
}

/* Replaces `out` by the matrix, or its transpose, times v, and divides it by its norm. */
static void multiply(const Matrix *m, bool transposed, const double *v, double *out)
{
  int64_t n = transposed ? m->columns : m->rows;
  memset(out, 0, (size_t)n * sizeof *out);
  for (int64_t r = 0; r < m->rows; r++)
    for (int64_t c = 0; c < m->columns; c++)
      out[transposed ? c : r] += *element_of(m, r, c) * v[transposed ? r : c];
  normalise(out, n);
}

/* Computes the singular vectors as torch.nn.utils.parametrizations.spectral_norm does: from random
 * ones, 15 iterations. `part`: memory for the vector that is not wanted. */
static void singular(const Matrix *m, Draw d, bool left, double *part, double *out)
{
  double *u = left ? out : part, *v = left ? part : out;
  for (int64_t i = 0; i < m->columns; i++) v[i] = philox_normal(d.seed, d.stream, (uint64_t)i);
  for (int i = 0; i < 15; i++) {
    multiply(m, false, v, u);
    multiply(m, true, u, v);
  }
}

static void norms(const Matrix *m, double *out)
{
  for (int64_t r = 0; r < m->rows; r++) {
    double sum = 0;
    for (int64_t c = 0; c < m->columns; c++) sum += *element_of(m, r, c) * *element_of(m, r, c);
    out[r] = sqrt(sum);
  }
}

static bool derived(const ampc_param *p, uint64_t seed, double *out)
{
  const ampc_param *of = p + (int64_t)p->init.a;
  Matrix m = {.rows = 1, .after = of->elements};
  if (p->init.b >= 0) {
    uint32_t axis = (uint32_t)p->init.b;
    m.rows = of->dim[axis];
    m.after = 1;
    for (uint32_t k = axis + 1; k < of->rank; k++) m.after *= of->dim[k];
  }
  m.columns = of->elements / m.rows;
  m.at = malloc((size_t)(2 * of->elements) * sizeof *m.at);
  bool good = m.at && init_values(of, seed, 0, of->elements, m.at);
  if (good && p->init.kind == AMPC_INIT_NORMS) norms(&m, out);
  /* both vectors of a weight begin with the same random numbers */
  Draw d = {seed, XXH3_64bits(of->path, strlen(of->path)) + 1};
  if (good && p->init.kind != AMPC_INIT_NORMS)
    singular(&m, d, p->init.kind == AMPC_INIT_LEFT, m.at + of->elements, out);
  free(m.at);
  return good;
}

bool init_is_whole(const ampc_param *p)
{
  return p->init.kind == AMPC_INIT_ORTHOGONAL || p->init.kind >= AMPC_INIT_NORMS;
}

bool init_values(const ampc_param *p, uint64_t seed, int64_t first, int64_t n, double *out)
{
  Draw d = {seed, XXH3_64bits(p->path, strlen(p->path))};
  if (p->init.kind >= AMPC_INIT_NORMS) return derived(p, seed, out);
  if (init_is_whole(p)) return orthogonal(p, d, out);
  for (int64_t i = 0; i < n; i++) out[i] = element(p, d, first + i);
  return true;
}
