/* grad(y, x) and grad(y, x, v): the gradient of y with respect to x, like torch.autograd.grad with
 * create_graph. Runs the reverse walk of passes/backward.c over the nodes so far. Its gradients are
 * ordinary nodes: passes/again.c. */
#include "compiler/passes/backward.h"
#include "interpret.h"

typedef struct Grad {
  Lower *l;
  Span span;
  Value y, scale; /* scale: the loss scale; {0}: none */
  VEC(Value) x;
} Grad;

static bool push_point(Grad *r, Datum x)
{
  Lower *l = r->l;
  if (!d_is_tensor(x))
    return refuse(l, E209, r->span, "grad differentiates by tensors, got %s", d_kind_text(l, x));
  Value v = as_tensor(l, x, r->span);
  if (!v.id) return false;
  vec_push(l->arena, &r->x, v);
  const Node *n = ir_node(l->g, v);
  if (dtype_is_float(n->dtype)) return true;
  return refuse(l, E311, r->span, "grad differentiates by floats, got %s", ir_type_text(l->c, n));
}

/* Returns the gradient of y itself: 1, or the third argument. Under a loss scaler it is multiplied
 * by the loss scale, so that gradients in f16 do not become 0. */
static Value first_gradient(Grad *r, const Datum *given)
{
  Lower *l = r->l;
  const Node y = *ir_node(l->g, r->y);
  Value v = given ? as_tensor(l, *given, r->span) : ir_number(l->c, &l->at, 1);
  if (!v.id) return v;
  const Node *n = ir_node(l->g, v);
  if (given && (!ir_same_dims(n, &y) || !dtype_is_float(n->dtype))) {
    fail(l, E311, r->span, "the third argument of grad has the shape of the first, got %s and %s",
         ir_type_text(l->c, n), ir_type_text(l->c, &y));
    return (Value){0};
  }
  if (l->g->scaler.on && l->g->blocks.at[l->at.block].kind == AMPC_TRAIN)
    r->scale = ir_append(l->c, &l->at, OP_loss_scale, NULL, 0, NULL);
  if (r->scale.id) v = given ? ir_binary(l->c, &l->at, OP_mul, v, r->scale) : r->scale;
  v = ir_expand(l->c, &l->at, v, y.dim, y.rank);
  return ir_append(l->c, &l->at, OP_cast_like, (Value[]){v, r->y}, 2, NULL);
}

static bool check_result(Grad *r, Datum y, bool given)
{
  Lower *l = r->l;
  if (!d_is_tensor(y))
    return refuse(l, E209, r->span, "grad differentiates a tensor, got %s", d_kind_text(l, y));
  r->y = as_tensor(l, y, r->span);
  if (!r->y.id) return false;
  const Node *n = ir_node(l->g, r->y);
  if (dtype_is_float(n->dtype) && (given || ir_elements(n) == 1)) return true;
  fail(l, E311, r->span, "grad differentiates one number of a float type, got %s",
       ir_type_text(l->c, n));
  return dtype_is_float(n->dtype) &&
         diag_help(l->c,
                   "differentiate the sum, `grad(y.sum(), x)`, or give each element a weight: "
                   "`grad(y, x, ones_like(y))`");
}

/* Reports an x that y does not depend on. */
static bool check_paths(const Grad *r, Backward *b)
{
  Lower *l = r->l;
  for (uint32_t i = 0; i < r->x.n; i++) {
    Value x = r->x.at[i];
    if (b->active[x.id]) continue;
    for (uint32_t k = 0; k < r->x.n; k++) b->wanted[r->x.at[k].id] = r->x.at[k].id == x.id;
    const char *name = ir_node(l->g, x)->name;
    fail(l, E609, r->span, "the first argument of grad does not depend on %s%s%s", name ? "`" : "",
         name ? name : ir_type_text(l->c, ir_node(l->g, x)), name ? "`" : "");
    backward_note_cut(b, r->y);
    const Node *n = ir_node(l->g, x);
    bool updated = ir_parameter(l->g, n) && attr_int(n, "version") > 0;
    return diag_help(l->c, updated
                               ? "after `minimize` a parameter has a new value: call grad before it"
                               : "pass a tensor from which the first argument was computed");
  }
  return true;
}

/* Returns the first active node at the border of a loop; NULL if there is none. */
static const Node *find_border(const Grad *r, const Backward *b)
{
  for (uint32_t id = 1; id <= r->y.id; id++)
    if (b->active[id] && !b->wanted[id] && op_has(&r->l->g->nodes.at[id], T_crosses))
      return &r->l->g->nodes.at[id];
  return NULL;
}

/* Walks back from y. In a `scan`, the nodes between x and y must belong to this iteration. */
static bool walk(const Grad *r, Backward *b, Value dy)
{
  const Node *border = find_border(r, b);
  if (border) {
    diag_error(r->l->c, E609, border->span, "grad does not differentiate through `scan`");
    diag_note(r->l->c, r->span, "the gradient is needed here");
    return diag_help(r->l->c, "write the loop as `for`, or use jvp, which differentiates `scan`; "
                              "LSTM, GRU, RNN and ctc_loss contain such loops");
  }
  backward_walk(b, r->y, dy, r->l->at.loop);
  return true;
}

/* Returns the gradient of x, without the loss scale. */
static Datum result(const Grad *r, const Backward *b, Value x)
{
  Lower *l = r->l;
  Value dx = b->dx[x.id];
  if (!dx.id) dx = ir_binary(l->c, &l->at, OP_full_like, x, ir_number(l->c, &l->at, 0));
  if (r->scale.id) {
    dx = ir_cast_asked(l->c, &l->at, dx, AMPC_F32);
    dx = ir_binary(l->c, &l->at, OP_div, dx, r->scale);
  }
  return unchanged(l, dx, r->span);
}

static Datum differentiate(Grad *r, Datum x, Value dy)
{
  Lower *l = r->l;
  Backward b;
  DatumVec list = {0};
  uint32_t first = l->g->nodes.n, errors = diag_error_count(l->c);
  backward_init(&b, l->c, first);
  b.again = true;
  b.span = r->span;
  for (uint32_t i = 0; i < r->x.n; i++) b.wanted[r->x.at[i].id] = true;
  backward_find(&b, r->y);
  if (!check_paths(r, &b) || !walk(r, &b, dy) || diag_error_count(l->c) > errors)
    return d_of(D_error);
  for (uint32_t id = first; id < l->g->nodes.n; id++) {
    l->g->nodes.at[id].origin = (Value){0};
    l->g->nodes.at[id].why = WHY_none;
  }
  if (!count_work(l, NODE_WORK * (l->g->nodes.n - first), r->span)) return d_of(D_error);
  for (uint32_t i = 0; i < r->x.n; i++) vec_push(l->arena, &list, result(r, &b, r->x.at[i]));
  return x.kind == D_list ? d_list_of(l, &list) : list.at[0];
}

static Datum run_grad(Lower *l, Args *args)
{
  Grad r = {.l = l, .span = diag_user_span(l->c, args->span)};
  Datum x = args->at.at[1].value;
  const Datum *given = args->at.n > 2 ? &args->at.at[2].value : NULL;
  if (!check_result(&r, args->at.at[0].value, given)) return d_of(D_error);
  if (x.kind == D_list && !x.n)
    return fail(l, E209, r.span, "grad differentiates by tensors, got an empty list");
  for (uint32_t i = 0; i < (x.kind == D_list ? x.n : 1); i++)
    if (!push_point(&r, x.kind == D_list ? x.as.list[i] : x)) return d_of(D_error);
  l->at.span = r.span;
  Value dy = first_gradient(&r, given);
  return dy.id ? differentiate(&r, x, dy) : d_of(D_error);
}

const Native grad_natives[] = {{"grad", 2, 3, .run = run_grad}, {0}};
