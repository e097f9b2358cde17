/* What an initialiser makes of a parameter: the numbers of torch.nn.init, drawn from Philox. They
 * depend on the seed, the parameter's path and its shape alone. */
#include "init_values.h"
#include <math.h>
#include <string.h>
#include <xxhash.h>
#include "runtime/base/philox.h"

typedef struct Draw { /* which sequence of random numbers */
  uint64_t seed, stream;
} Draw;

/* ---- element by element ---- */

/* Normal numbers until one lies inside. Bounds far out in a tail would never be met: then the
 * nearer one is as good as any. */
static double truncated(const ampc_init *init, Draw d, uint64_t i)
{
  enum { TRIES = 1000 };
  for (uint64_t k = 0; k < TRIES; k++) {
    double v = init->a + init->b * philox_normal(d.seed, d.stream + k, i);
    if (v >= init->low && v <= init->high) return v;
  }
  return fabs(init->low - init->a) < fabs(init->high - init->a) ? init->low : init->high;
}

/* A convolution that gives its input on, in each of `a` groups of channels. */
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

/* Element i of those that do not depend on the others. */
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

typedef struct Vectors { /* those of a matrix that are made orthogonal: its rows or its columns */
  double *at;
  int64_t n, size, next,
      step; /* number, elements; from one vector to the next, one element to it */
} Vectors;

/* Takes from vector k what it has of the earlier ones; twice, for what rounding leaves. */
static void make_orthogonal(const Vectors *v, int64_t k)
{
  double *own = v->at + k * v->next;
  for (int64_t j = 0; j < 2 * k; j++) {
    const double *other = v->at + j % k * v->next;
    double dot = 0;
    for (int64_t i = 0; i < v->size; i++) dot += own[i * v->step] * other[i * v->step];
    for (int64_t i = 0; i < v->size; i++) own[i * v->step] -= dot * other[i * v->step];
  }
  double norm = 0;
  for (int64_t i = 0; i < v->size; i++) norm += own[i * v->step] * own[i * v->step];
  for (int64_t i = 0; i < v->size; i++) own[i * v->step] /= sqrt(norm);
}

/* The Q of a normal matrix [first axis, all others], with R's diagonal positive; times a. */
static void orthogonal(const ampc_param *p, Draw d, double *out)
{
  int64_t rows = p->dim[0], columns = p->elements / rows;
  bool wide = rows < columns;
  Vectors v = {out, wide ? rows : columns, wide ? columns : rows, wide ? columns : 1,
               wide ? 1 : columns};
  for (int64_t i = 0; i < p->elements; i++) out[i] = philox_normal(d.seed, d.stream, (uint64_t)i);
  for (int64_t k = 0; k < v.n; k++) make_orthogonal(&v, k);
  for (int64_t i = 0; i < p->elements; i++) out[i] *= p->init.a;
}

bool init_is_whole(const ampc_param *p)
{
  return p->init.kind == AMPC_INIT_ORTHOGONAL;
}

void init_values(const ampc_param *p, uint64_t seed, int64_t first, int64_t n, double *out)
{
  Draw d = {seed, XXH3_64bits(p->path, strlen(p->path))};
  if (init_is_whole(p)) {
    orthogonal(p, d, out);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = element(p, d, first + i);
  }
}
