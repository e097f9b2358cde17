/* Tangents of ops of the job (Note [tangents] in rules/tangent.c), although these declare only
 * gradients.
 *
 * Let dx_i = B_i(dy), which is linear in dy. For the tangent t = J v, the product <dy, t> is the
 * sum of all <B_i(dy), v_i>. So t is the gradient of that sum with respect to dy. This file appends
 * the gradient rule with placeholder nodes for dy and differentiates the result with respect to
 * these placeholders. No node reads the values of the placeholders, so simplify drops them. */
#include "compiler/graph/own.h"
#include "compiler/rules/tangent.h"
#include "backward.h"

typedef struct Turned {
  Forward *f;
  Value op, dy; /* dy: placeholder for the gradient of one output; the others are 0 */
} Turned;

static bool refuse_backward(const Turned *t, const char *what, const Node *n)
{
  Compile *c = t->f->b.c;
  const OwnOp *own = own_of(ir_node(c->graph, t->op));
  diag_error(c, E703, n->span,
             "jvp differentiates the backward of op `%s`, but cannot differentiate %s", own->name,
             what);
  diag_note(c, t->f->b.n.span, "the op is called here");
  diag_help(c, "backward must be linear in its gradients: sums of products of a gradient with "
               "values that do not depend on gradients");
  return false;
}

/* True if all nodes from `first` on that depend on dy have gradients. Reports one without. */
static bool can_turn(const Turned *t, uint32_t first)
{
  Compile *c = t->f->b.c;
  const Graph *g = c->graph;
  bool *of_dy = arena_array(c->arena, bool, g->nodes.n);
  of_dy[t->dy.id] = true;
  for (uint32_t id = first; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    const OwnOp *own = own_of(n);
    for (uint32_t i = 0; i < n->n_in; i++)
      of_dy[id] = of_dy[id] || (of_dy[n->in[i].id] && own_reads_elements(n, i));
    if (!of_dy[id]) continue;
    if (op_has(n, T_crosses)) return refuse_backward(t, "`scan`", n);
    if (own && !own_has_backward(g, (Value){id}))
      return refuse_backward(t, arena_printf(c->arena, "op `%s`: it has no `backward`", own->name),
                             n);
    if (ir_stops_gradient(g, n))
      return refuse_backward(t, arena_printf(c->arena, "`%s`", op_of(n)->name), n);
  }
  return true;
}

/* Returns the gradient of <dx, v> with respect to dy; {0} if dx does not depend on dy. */
static Value turned(const Turned *t, Value dx, Value v)
{
  Backward b;
  Compile *c = t->f->b.c;
  const Cursor *at = &t->f->b.at;
  backward_init(&b, c, c->graph->nodes.n);
  b.wanted[t->dy.id] = true;
  if (!backward_find(&b, dx)) return (Value){0};
  b.dx[dx.id] = ir_cast(c, at, v, ir_node(c->graph, dx)->dtype);
  for (uint32_t id = dx.id; id > t->dy.id; id--)
    if (b.active[id] && b.dx[id].id) backward_step(&b, (Value){id});
  return b.dx[t->dy.id];
}

Value tangent_own(Forward *f)
{
  Compile *c = f->b.c;
  Value op = f->b.n.op == OP_own_result ? f->b.n.in[0] : f->b.y, sum = {0};
  Node n = *ir_node(c->graph, op);
  uint32_t output = op.id == f->b.y.id ? own_of(&n)->main : (uint32_t)attr_int(&f->b.n, "index");
  Turned t = {.f = f, .op = op, .dy = tangent_filled(f, f->b.y, 0)};
  Value *dx = arena_array(c->arena, Value, n.n_in), dy[MAX_RESULTS] = {{0}};
  uint32_t first = c->graph->nodes.n;
  dy[output] = t.dy;
  own_gradients(c, op, dy, dx);
  if (!can_turn(&t, first)) return sum;
  for (uint32_t i = 0; i < n.n_in; i++) {
    Value v = f->of[n.in[i].id];
    if (v.id && dx[i].id) sum = tangent_sum(f, sum, turned(&t, dx[i], v));
  }
  return sum;
}
