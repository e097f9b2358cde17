/* Initial values: the properties that each initializer guarantees. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "runner/selftest/number.h"
#include "runtime/state/init_values.h"

/* Checks that values computed in parts equal those computed at once. */
static void check_parts(const ampc_param *p, uint64_t seed, const double *all)
{
  double part[7];
  for (int64_t i = 0; i < p->elements && !init_is_whole(p); i += 7) {
    int64_t n = p->elements - i < 7 ? p->elements - i : 7;
    init_values(p, seed, i, n, part);
    CHECK(memcmp(part, all + i, (size_t)n * sizeof *part) == 0);
  }
}

static double *values(ampc_param *p, uint64_t seed)
{
  p->elements = 1;
  for (uint32_t k = 0; k < p->rank; k++) p->elements *= p->dim[k];
  double *v = malloc((size_t)p->elements * sizeof *v);
  init_values(p, seed, 0, p->elements, v);
  check_parts(p, seed, v);
  return v;
}

static void test_truncated(void)
{
  ampc_param p = {.path = "w", .rank = 2, .dim = {301, 100}};
  p.init = (ampc_init){AMPC_INIT_TRUNC_NORMAL, 1, 2, -1, 4};
  double *v = values(&p, 3), sum = 0, least = 9, most = -9;
  for (int64_t i = 0; i < p.elements; i++) {
    sum += v[i];
    least = fmin(least, v[i]);
    most = fmax(most, v[i]);
  }
  CHECK(least >= -1 && least < -0.99 && most <= 4 && most > 3.99);
  /* mean + std (phi(-1) - phi(1.5)) / (Phi(1.5) - Phi(-1)) */
  double phi1 = exp(-0.5) / sqrt(2 * M_PI), phi2 = exp(-1.125) / sqrt(2 * M_PI);
  double inside = 0.5 * (erf(1.5 / sqrt(2)) - erf(-1 / sqrt(2)));
  CHECK(fabs(sum / (double)p.elements - (1 + 2 * (phi1 - phi2) / inside)) < 0.04);
  free(v);
  p.init = (ampc_init){AMPC_INIT_TRUNC_NORMAL, 0, 1, 40, 50}; /* far out in the tail */
  v = values(&p, 3);
  CHECK(v[0] == 40);
  free(v);
}

/* Checks that the shorter sides of [first axis, others] are orthogonal with length `gain`. */
static void check_orthogonal(ampc_param p)
{
  p.path = "w";
  p.init = (ampc_init){.kind = AMPC_INIT_ORTHOGONAL, .a = 0.5};
  double *v = values(&p, 7), *other = values(&p, 8), worst = 0;
  int64_t rows = p.dim[0], columns = p.elements / rows;
  bool wide = rows < columns;
  int64_t n = wide ? rows : columns, size = wide ? columns : rows;
  for (int64_t a = 0; a < n; a++) {
    for (int64_t b = 0; b < n; b++) {
      double dot = 0;
      for (int64_t i = 0; i < size; i++)
        dot += wide ? v[a * columns + i] * v[b * columns + i]
                    : v[i * columns + a] * v[i * columns + b];
      worst = number_worse(worst, fabs(dot - (a == b ? 0.25 : 0)));
    }
  }
  CHECK(worst < 1e-12);
  CHECK(v[0] != other[0]);
  free(v);
  free(other);
}

static void test_patterns(void)
{
  ampc_param p = {.path = "w", .rank = 2, .dim = {2, 3}, .init = {.kind = AMPC_INIT_EYE}};
  double *v = values(&p, 1);
  const double eye[] = {1, 0, 0, 0, 1, 0};
  for (int i = 0; i < 6; i++) CHECK(v[i] == eye[i]);
  free(v);
  /* like torch.nn.init.dirac_ of [4, 2, 3, 2] with two groups: outputs 0 and 2 copy input 0,
   * outputs 1 and 3 copy input 1, at the centre [1, 1] */
  ampc_param d = {.path = "w", .rank = 4, .dim = {4, 2, 3, 2}};
  d.init = (ampc_init){.kind = AMPC_INIT_DIRAC, .a = 2};
  v = values(&d, 1);
  for (int64_t i = 0; i < d.elements; i++) {
    bool centre = i % 6 == 3, own = i / 12 % 2 == i / 6 % 2;
    CHECK(v[i] == (centre && own ? 1 : 0));
  }
  free(v);
}

/* Norms of a weight [2, 3, 2], which follows in the list of parameters: of the slices of axis 1,
 * and of all elements. */
static void test_norms(void)
{
  ampc_param p[2] = {
      {.path = "g", .rank = 1, .dim = {3}, .init = {AMPC_INIT_NORMS, .a = 1, .b = 1}},
      {.path = "v", .rank = 3, .dim = {2, 3, 2}, .init = {AMPC_INIT_NORMAL, 0, 2}}};
  double *weight = values(&p[1], 5), *norm = values(&p[0], 5), sum = 0;
  for (int k = 0; k < 3; k++) {
    double square = 0;
    for (int i = 0; i < 12; i++) square += i / 2 % 3 == k ? weight[i] * weight[i] : 0;
    CHECK(fabs(norm[k] - sqrt(square)) < 1e-14);
    sum += square;
  }
  free(norm);
  p[0].rank = 0;
  p[0].init.b = -1;
  norm = values(&p[0], 5);
  CHECK(fabs(norm[0] - sqrt(sum)) < 1e-14);
  free(norm);
  free(weight);
}

/* The vectors of a weight whose rows or columns are orthogonal with length 3 have the singular
 * value 3 at once, also if the axis is not the first. */
static void test_singular(void)
{
  for (int axis = 0; axis < 2; axis++) {
    ampc_param p[3] = {
        {.path = "w", .rank = 2, .dim = {4, 6}, .init = {AMPC_INIT_ORTHOGONAL, 3}},
        {.path = "u", .rank = 1, .dim = {axis ? 6 : 4}, .init = {AMPC_INIT_LEFT, -1, axis}},
        {.path = "v", .rank = 1, .dim = {axis ? 4 : 6}, .init = {AMPC_INIT_RIGHT, -2, axis}}};
    double *w = values(&p[0], 5), *u = values(&p[1], 5), *v = values(&p[2], 5);
    double sigma = 0, lengths[2] = {0};
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 6; j++) sigma += w[i * 6 + j] * (axis ? u[j] * v[i] : u[i] * v[j]);
    for (int i = 0; i < p[1].dim[0]; i++) lengths[0] += u[i] * u[i];
    for (int i = 0; i < p[2].dim[0]; i++) lengths[1] += v[i] * v[i];
    CHECK(fabs(sigma - 3) < 1e-12 && fabs(lengths[0] - 1) < 1e-12 && fabs(lengths[1] - 1) < 1e-12);
    free(w);
    free(u);
    free(v);
  }
}

int main(void)
{
  test_truncated();
  test_norms();
  test_singular();
  check_orthogonal((ampc_param){.rank = 2, .dim = {33, 65}});
  check_orthogonal((ampc_param){.rank = 2, .dim = {65, 33}});
  check_orthogonal((ampc_param){.rank = 4, .dim = {7, 3, 3, 3}});
  check_orthogonal((ampc_param){.rank = 2, .dim = {8, 70}});
  test_patterns();
  return check_done();
}
