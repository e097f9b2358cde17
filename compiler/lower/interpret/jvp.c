/* jvp(f, x, v): f(x) and its derivative along v, like torch.func.jvp. f is called like any
 * function; then a pass over the appended nodes makes the tangents (Note [tangents]). */
#include "interpret.h"
#include "describe.h"

enum { POINTS_at = 1, DIRECTIONS_at = 2 };

typedef VEC(Value) ValueVec;

typedef struct Jvp {
  Lower *l;
  Span span;
  ValueVec x, along;
  Args args; /* arguments of f */
} Jvp;

/* Adds one argument of f and its direction. f gets a new node as its argument. So f may get one
 * value twice, with different directions, and other uses of that value in f are constant. */
static bool push_point(Jvp *j, Datum point, Datum direction)
{
  Lower *l = j->l;
  if (!d_is_tensor(point) || !d_is_tensor(direction))
    return refuse(l, E209, j->span, "jvp takes tensors and their directions, got %s and %s",
                  d_kind_text(l, point), d_kind_text(l, direction));
  Value x = as_tensor(l, point, j->span), v = as_tensor(l, direction, j->span);
  if (!x.id || !v.id) return false;
  const Node *xn = ir_node(l->g, x), *vn = ir_node(l->g, v);
  if (!ir_same_dims(xn, vn) || !dtype_is_float(xn->dtype) || !dtype_is_float(vn->dtype)) {
    fail(l, E311, j->span, "jvp takes floats and directions of the same shape, got %s and %s",
         ir_type_text(l->c, xn), ir_type_text(l->c, vn));
    return diag_help(
        l->c, "for the derivative of an elementwise function, pass the direction `ones_like(x)`");
  }
  Datum own = append(l, j->span, OP_reshape, &x, 1, ir_shape_attrs(l->c, xn->dim, xn->rank));
  if (d_is(own, D_error)) return false;
  vec_push(l->arena, &j->x, own.as.tensor);
  vec_push(l->arena, &j->along, v);
  args_push(l, &j->args, own, j->span);
  return true;
}

static bool push_points(Jvp *j, Datum points, Datum directions)
{
  if (points.kind != D_list && directions.kind != D_list) return push_point(j, points, directions);
  if (points.kind != D_list || directions.kind != D_list || points.n != directions.n || !points.n)
    return refuse(j->l, E209, j->span, "jvp takes one direction for each argument, got %s and %s",
                  d_kind_text(j->l, points), d_kind_text(j->l, directions));
  for (uint32_t i = 0; i < points.n; i++)
    if (!push_point(j, points.as.list[i], directions.as.list[i])) return false;
  return true;
}

/* Returns the result of f, in which each(tensor) replaces every tensor. */
typedef Datum Each(Jvp *j, const Tangents *t, Datum y);

static Datum mapped(Jvp *j, const Tangents *t, Datum y, Each *each)
{
  DatumVec items = {0};
  if (y.kind != D_list) return each(j, t, y);
  for (uint32_t i = 0; i < y.n; i++) {
    Datum item = mapped(j, t, y.as.list[i], each);
    if (d_is(item, D_error)) return item;
    vec_push(j->l->arena, &items, item);
  }
  Datum list = d_list_of(j->l, &items);
  list.tuple = y.tuple;
  return list;
}

/* Returns y as a node. Reads parameters before tangents_find() reads the number of nodes. */
static Datum as_result(Jvp *j, const Tangents *t, Datum y)
{
  (void)t;
  if (!d_is_tensor(y))
    return fail(j->l, E209, j->span, "the function of jvp must return tensors, got %s",
                d_kind_text(j->l, y));
  Value v = as_tensor(j->l, y, j->span);
  return v.id ? d_tensor(v) : d_of(D_error);
}

/* Returns the tangent of y; zeros if y does not depend on x. */
static Datum as_tangent(Jvp *j, const Tangents *t, Datum y)
{
  Lower *l = j->l;
  Value v = t->of[y.as.tensor.id];
  if (v.id) return d_tensor(v);
  Value in[] = {y.as.tensor, ir_number(l->c, &l->at, 0)};
  return append(l, j->span, OP_full_like, in, 2, NULL);
}

static Datum run_jvp(Lower *l, Args *args)
{
  Jvp j = {.l = l, .span = args->span, .args = {.span = args->span}};
  Tangents t = {.c = l->c, .region = l->at.region, .span = diag_user_span(l->c, args->span)};
  if (!push_points(&j, args->at.at[POINTS_at].value, args->at.at[DIRECTIONS_at].value))
    return d_of(D_error);
  t.first = l->g->nodes.n;
  l->in_jvp++;
  Datum y = call(l, args->at.at[0].value, &j.args);
  l->in_jvp--;
  if (!d_is(y, D_error)) y = mapped(&j, &t, y, as_result);
  if (d_is(y, D_error) || !tangents_find(&t, j.x.at, j.along.at, j.x.n)) return d_of(D_error);
  Datum dy = mapped(&j, &t, y, as_tangent);
  if (d_is(dy, D_error)) return dy;
  DatumVec both = {0};
  vec_push(l->arena, &both, y);
  vec_push(l->arena, &both, dy);
  Datum result = d_list_of(l, &both);
  result.tuple = true;
  return result;
}

const Native jvp_natives[] = {{"jvp", 3, 3, .run = run_jvp}, {0}};
