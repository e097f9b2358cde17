/* See orthogonal.h. A matrix X is divided by its Frobenius norm, so no singular value exceeds 1.
 * Then each of five steps applies an odd polynomial to the singular values, which moves them close
 * to 1 and leaves the singular vectors:
 *
 *   A = X X^T    X = a X + (b A + c A A) X
 *
 * If X has more rows than columns, A is X^T X and stands on the right of X; A is then the smaller
 * one of the two. Matrices of equal shape are one batch of products, however many there are. */
#include "orthogonal.h"
#include "compiler/graph/optimizers.h"
#include "compiler/graph/param_parts.h"
#include <math.h>
#include <string.h>

/* Jordan et al., 2024: the largest slope at 0 for which five steps end in about [0.7, 1.2]. */
static const double slope = 3.4445, cubic = -4.7750, quintic = 2.0315, least_norm = 1e-7;
enum { STEPS = 5 };

typedef struct Matrix {
  uint32_t param;
  int64_t rows, columns, place; /* place: of its first element in the result of the first op */
} Matrix;

typedef struct Orthogonal {
  Compile *c;
  Cursor at;
  DType low;
  int64_t part; /* elements of a part */
  VEC(Matrix) matrices;
} Orthogonal;

static void add_matrix(const Parameter *p, int64_t elements, int64_t first_part, void *data)
{
  Orthogonal *o = data;
  (void)elements;
  vec_push(o->c->arena, &o->matrices,
           ((Matrix){.param = (uint32_t)(p - o->c->graph->params.at),
                     .rows = p->dim[0],
                     .columns = p->dim[1],
                     .place = first_part * o->part}));
}

/* ---- the steps ---- */

static Value product(Orthogonal *o, Value x, Value y, bool trans_x, bool trans_y)
{
  Cursor at = o->at;
  at.why = ampc_is_narrow(o->low) ? WHY_low : WHY_region;
  return ir_append(o->c, &at, OP_gemm, (Value[]){x, y}, 2,
                   ATTRS({"trans_a", {.i = trans_x}}, {"trans_b", {.i = trans_y}}));
}

/* Returns p x + q y, computed in f32 and rounded once. */
static Value combined(Orthogonal *o, double p, Value x, double q, Value y)
{
  x = ir_binary(o->c, &o->at, op_named("mul"), ir_cast(o->c, &o->at, x, AMPC_F32),
                ir_number(o->c, &o->at, p));
  y = ir_cast(o->c, &o->at, y, AMPC_F32);
  if (q != 1) y = ir_binary(o->c, &o->at, op_named("mul"), y, ir_number(o->c, &o->at, q));
  return ir_cast(o->c, &o->at, ir_binary(o->c, &o->at, op_named("add"), x, y), o->low);
}

static Value stepped(Orthogonal *o, Value x, bool tall)
{
  Value a = product(o, x, x, tall, !tall);
  Value b = combined(o, cubic, a, quintic, product(o, a, a, false, false));
  Value y = tall ? product(o, x, b, false, false) : product(o, b, x, false, false);
  return combined(o, slope, x, 1, y);
}

/* Divides each matrix of a batch by its norm. */
static Value normalized(Orthogonal *o, Value x)
{
  const int64_t axes = 1 << 1 | 1 << 2;
  Value square = ir_binary(o->c, &o->at, op_named("mul"), x, x);
  Value sum = ir_reduce(o->c, &o->at, OP_sum, square, axes, true);
  Value norm = ir_append(o->c, &o->at, op_named("sqrt"), &sum, 1, NULL);
  norm = ir_binary(o->c, &o->at, op_named("maximum"), norm, ir_number(o->c, &o->at, least_norm));
  return ir_cast(o->c, &o->at, ir_binary(o->c, &o->at, op_named("div"), x, norm), o->low);
}

/* ---- batches ---- */

/* Returns elements [from, from + rows * columns) as a matrix, or as a batch of one. */
static Value piece(Orthogonal *o, Value x, int64_t from, const Matrix *m, uint32_t rank)
{
  const int64_t dim[] = {1, m->rows, m->columns};
  Value v = ir_append(o->c, &o->at, OP_slice, &x, 1,
                      ATTRS({"dim", {.i = 0}}, {"start", {.i = from}},
                            {"stop", {.i = from + m->rows * m->columns}}));
  return ir_reshape(o->c, &o->at, v, dim + 3 - rank, rank);
}

/* torch.optim.Muon's adjust_lr_fn: "original", or with the flag "match_rms_adamw" */
static double shape_factor(const Matrix *m, bool match_adamw)
{
  double rows = (double)m->rows, columns = (double)m->columns;
  return match_adamw ? 0.2 * sqrt(fmax(rows, columns)) : sqrt(fmax(1, rows / columns));
}

/* Orthogonalizes the matrices of one shape, and accumulates them. */
static void append_batch(Orthogonal *o, Value first, const Matrix *m, uint32_t n, bool match_adamw)
{
  Value *parts = arena_array(o->c->arena, Value, n);
  for (uint32_t i = 0; i < n; i++) parts[i] = piece(o, first, m[i].place, &m[i], 3);
  Value x = n == 1 ? parts[0] : ir_append(o->c, &o->at, OP_cat, parts, n, NULL);
  x = normalized(o, x);
  for (int i = 0; i < STEPS; i++) x = stepped(o, x, m->rows > m->columns);
  x = ir_cast(o->c, &o->at, x, AMPC_F32);
  x = ir_binary(o->c, &o->at, op_named("mul"), x,
                ir_number(o->c, &o->at, shape_factor(m, match_adamw)));
  int64_t size = m->rows * m->columns;
  x = ir_reshape(o->c, &o->at, x, (int64_t[]){n * size}, 1);
  for (uint32_t i = 0; i < n; i++) {
    Value change = piece(o, x, i * size, m, 2);
    ir_append(o->c, &o->at, OP_grad_accumulate, &change, 1, ATTRS({"param", {.i = m[i].param}}));
  }
}

void orthogonal_append(Compile *c, const Cursor *at, Value loss, Value first, int64_t optimizer,
                       uint32_t group)
{
  const Graph *g = c->graph;
  const Optimizer *own = &g->optimizers.at[optimizer];
  bool match = optimizer_holds(own, &own->groups.at[group], MUON_SCALE, strlen(MUON_SCALE));
  Orthogonal o = {.c = c, .at = *at};
  ParamParts parts = param_parts(g, optimizer, group);
  o.part = parts.size;
  o.at.region = g->precision ? ir_node(g, loss)->region : 0;
  while (g->regions.at[o.at.region].parent) o.at.region = g->regions.at[o.at.region].parent;
  o.at.layer = own->name;
  o.low = region_low(g->regions.at[o.at.region].kind);
  param_parts_each(g, optimizer, group, &parts, add_matrix, &o);
  Matrix *same = arena_array(c->arena, Matrix, o.matrices.n);
  for (uint32_t i = 0; i < o.matrices.n; i++) {
    Matrix *m = &o.matrices.at[i];
    uint32_t n = 0;
    for (uint32_t k = i; k < o.matrices.n && m->rows; k++) {
      Matrix *other = &o.matrices.at[k];
      if (k > i && (other->rows != m->rows || other->columns != m->columns)) continue;
      same[n++] = *other;
      if (k > i) other->rows = 0; /* taken */
    }
    if (n) append_batch(&o, first, same, n, match);
  }
}
