/* Tangents of batch norm and max pools. */
#include "tangent.h"

/* ---- batch norm ---- */

static Value in_channels(Back *b, Value x)
{
  return back_channels(b, back_wide(b, x));
}

/* Returns the mean of each channel; the other axes have size 1. */
static Value channel_means(Back *b, Value x)
{
  uint64_t axes = ((1ull << b->n.rank) - 1) & ~(1ull << attr_int(&b->n, "channel"));
  return ir_reduce(b->c, &b->at, OP_mean, x, axes, true);
}

typedef struct Normed { /* z = off r: x minus its mean, divided by its standard deviation */
  Value off, r, z;
} Normed;

/* Computes mean and standard deviation again, as functions of x. The gradient rule of batch norm
 * covers the paths through both, so these inputs of the node have no gradient of their own. eps is
 * recovered as 1 / r^2 minus the variance. */
static Normed of_batch(Back *b, Value off, Value r)
{
  off = back_binary(b, OP_sub, off, channel_means(b, off));
  Value var = channel_means(b, back_mul(b, off, off));
  Value square = back_unary(b, OP_reciprocal, back_mul(b, r, r));
  Value eps = back_unary(b, OP_detach, back_binary(b, OP_sub, square, var));
  r = back_unary(b, OP_rsqrt, back_binary(b, OP_add, var, eps));
  return (Normed){off, r, back_mul(b, off, r)};
}

/* Returns the term of x. The tangent of z is r (v - mean(v) - z mean(z v)), or r v if mean and
 * deviation do not depend on x. */
static Value of_input(Forward *f, const Normed *x, bool batch)
{
  Back *b = &f->b;
  Value v = back_wide(b, f->v[0]);
  if (batch) {
    Value through = back_mul(b, x->z, channel_means(b, back_mul(b, x->z, v)));
    v = back_binary(b, OP_sub, back_binary(b, OP_sub, v, channel_means(b, v)), through);
  }
  v = back_mul(b, v, x->r);
  return b->n.in[3].id ? back_mul(b, v, in_channels(b, b->n.in[3])) : v;
}

/* Returns the term of mean and deviation, if independent of x; {0} if neither has a tangent. */
static Value of_statistics(Forward *f, const Normed *x)
{
  Back *b = &f->b;
  Value part = {0};
  if (f->v[1].id) part = back_unary(b, OP_neg, back_mul(b, x->r, in_channels(b, f->v[1])));
  if (f->v[2].id) part = tangent_sum(f, part, back_mul(b, x->off, in_channels(b, f->v[2])));
  bool weighted = part.id && b->n.in[3].id;
  return weighted ? back_mul(b, part, in_channels(b, b->n.in[3])) : part;
}

/* Returns the tangent of y = z weight + bias. */
static Value normed(Forward *f, bool batch)
{
  Back *b = &f->b;
  const Value *in = b->n.in, *v = f->v;
  Value part = {0}, r = in_channels(b, in[2]);
  Value off = back_binary(b, OP_sub, back_wide(b, in[0]), in_channels(b, in[1]));
  Normed x = batch ? of_batch(b, off, r) : (Normed){off, r, back_mul(b, off, r)};
  if (v[0].id) part = of_input(f, &x, batch);
  if (!batch) part = tangent_sum(f, part, of_statistics(f, &x));
  if (v[3].id) part = tangent_sum(f, part, back_mul(b, x.z, in_channels(b, v[3])));
  if (v[4].id) part = tangent_sum(f, part, in_channels(b, v[4]));
  if (!part.id) return part; /* the term of x includes those of the batch's statistics */
  return back_binary(b, OP_like, in[0], ir_expand(b->c, &b->at, part, b->n.dim, b->n.rank));
}

Value tangent_batch_norm(Forward *f)
{
  return normed(f, true);
}

Value tangent_batch_norm_eval(Forward *f)
{
  return normed(f, false);
}

/* ---- max pools ---- */

static Value attribute(Back *b, const char *name, uint32_t axis)
{
  name = arena_printf(b->c->arena, "%s%u", name, axis);
  return ir_integer(b->c, &b->at, attr_int(&b->n, name));
}

/* Returns the row (axis 0) or column of the largest pixel: the first row or column of the window,
 * plus the offset that `tap` encodes. */
static Value pixel(Back *b, Value tap, uint32_t axis)
{
  int64_t dim[] = {axis ? 1 : b->n.dim[2], axis ? b->n.dim[3] : 1};
  Value place = ir_append(b->c, &b->at, OP_indices, NULL, 0, ir_shape_attrs(b->c, dim, 2));
  place = back_mul(b, place, attribute(b, "stride", axis));
  place = back_binary(b, OP_sub, place, attribute(b, "pad", axis));
  Value step =
      back_binary(b, axis ? OP_remainder : OP_floor_divide, tap, attribute(b, "kernel", 1));
  return back_binary(b, OP_add, place, back_mul(b, step, attribute(b, "dil", axis)));
}

/* Returns the tangent of the largest pixel of each window. */
Value tangent_max_pool2d(Forward *f)
{
  Back *b = &f->b;
  Node x = *back_in(b, 0);
  Value tap = ir_cast(b->c, &b->at, back_greatest(b), AMPC_I64);
  Value row = back_mul(b, pixel(b, tap, 0), ir_integer(b->c, &b->at, x.dim[3]));
  Value place = back_binary(b, OP_add, row, pixel(b, tap, 1));
  int64_t from[] = {x.dim[0], x.dim[1], x.dim[2] * x.dim[3]};
  int64_t to[] = {x.dim[0], x.dim[1], b->n.dim[2] * b->n.dim[3]};
  Value in[] = {ir_reshape(b->c, &b->at, f->v[0], from, 3), ir_reshape(b->c, &b->at, place, to, 3)};
  return tangent_shaped(f, ir_append(b->c, &b->at, OP_gather, in, 2, ATTRS({"dim", {.i = 2}})));
}
