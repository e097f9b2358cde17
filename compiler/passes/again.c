/* Gradients that can be differentiated again, for grad(). Each gradient rule computes dx from dy
 * and values of forward. If all ops on the way from dy to dx have gradients of their own, the rule
 * is used as it is. Other rules end in one op that computes the whole gradient, such as
 * layer_norm_backward, which has no gradient.
 *
 * Note [transposed tangents]
 * Then this file transposes the tangent T of the op (Note [tangents] in rules/tangent.c), which
 * uses only ops with gradients. T is linear in the tangents v of the inputs. So dx is the gradient
 * of <dy, T(v)> by v. The placeholders for v, and T itself, are nodes that no result reads. Pass
 * precision types them, since gradients take the types of their values; simplify drops them.
 * own_tangent.c does the opposite: it makes a tangent from a gradient. */
#include "compiler/graph/own.h"
#include "compiler/rules/tangent.h"
#include "backward.h"

static bool is_active(const Backward *b, Value x)
{
  return x.id && x.id < b->n && b->active[x.id];
}

/* True if x is the gradient of y or, for an op of the job, of another of its outputs. */
static bool is_dy(const Backward *b, Value y, Value x)
{
  const Graph *g = b->c->graph;
  const OwnOp *own = own_of(ir_node(g, y));
  bool found = x.id && x.id == b->dx[y.id].id;
  for (uint32_t i = 0; own && i < own->n_outputs; i++) {
    Value output = own_result(g, y, i);
    found = found || (x.id && output.id < b->n && x.id == b->dx[output.id].id);
  }
  return found;
}

/* Returns the first node from `first` on that lies between dy and the gradient of an active input,
 * but has no gradient; NULL if there is none. */
static const Node *find_final(const Backward *b, Value y, uint32_t first, const Value *dx)
{
  const Graph *g = b->c->graph;
  const Node *n = ir_node(g, y);
  uint32_t count = g->nodes.n - first;
  const Node *final = NULL;
  bool *of_dy = arena_array(b->c->arena, bool, count),
       *needed = arena_array(b->c->arena, bool, count);
  for (uint32_t i = 0; i < n->n_in; i++)
    if (is_active(b, n->in[i]) && dx[i].id >= first) needed[dx[i].id - first] = true;
  for (uint32_t k = 0; k < count; k++) {
    const Node *m = &g->nodes.at[first + k];
    for (uint32_t i = 0; i < m->n_in; i++)
      of_dy[k] =
          of_dy[k] || is_dy(b, y, m->in[i]) || (m->in[i].id >= first && of_dy[m->in[i].id - first]);
  }
  for (uint32_t k = count; k-- > 0;) {
    const Node *m = &g->nodes.at[first + k];
    if (!needed[k]) continue;
    if (of_dy[k] && ir_stops_gradient(g, m)) final = m;
    for (uint32_t i = 0; i < m->n_in; i++)
      if (m->in[i].id >= first) needed[m->in[i].id - first] = true;
  }
  return final;
}

static void walk_back(Backward *b, Value y, Value dy, uint32_t first)
{
  b->dx[y.id] = dy;
  for (uint32_t id = y.id; id >= first; id--)
    if (b->active[id] && b->dx[id].id) backward_step(b, (Value){id});
}

void backward_walk(Backward *b, Value y, Value dy, uint16_t loop)
{
  tangent_turn_loops(b->c->graph, loop, true);
  walk_back(b, y, dy, 1);
  tangent_turn_loops(b->c->graph, loop, false);
}

/* Returns the placeholder for the tangent of x, in the type in which the op reads x. */
static Value placeholder(Forward *f, Value x)
{
  Value v = tangent_filled(f, x, 0);
  return op_of(&f->b.n)->precision == PREC_f32 ? back_wide(&f->b, v) : v;
}

/* Note [transposed tangents] */
static void transpose(const Backward *b, Value y, Value dy, TangentRule *rule, Value *out_dx)
{
  Compile *c = b->c;
  Forward f = {.b = back_begin(c, y, (Value){0})};
  const Node n = f.b.n;
  Value *v = arena_array(c->arena, Value, n.n_in);
  uint32_t first = c->graph->nodes.n;
  for (uint32_t i = 0; i < n.n_in; i++)
    if (is_active(b, n.in[i])) v[i] = placeholder(&f, n.in[i]);
  f.v = v;
  Value t = rule(&f);
  Backward inner;
  backward_init(&inner, c, c->graph->nodes.n);
  inner.again = inner.transposed = true;
  inner.span = b->span;
  for (uint32_t i = 0; i < n.n_in; i++) inner.wanted[v[i].id] = v[i].id != 0;
  if (!t.id || !backward_find(&inner, t)) return;
  dy = ir_append(c, &f.b.at, OP_cast_like, (Value[]){dy, t}, 2, NULL);
  walk_back(&inner, t, dy, first);
  for (uint32_t i = 0; i < n.n_in; i++) out_dx[i] = inner.dx[v[i].id];
}

void backward_again(Backward *b, Value v, Value dy, uint32_t first, Value *out_dx)
{
  Compile *c = b->c;
  const Node n = *ir_node(c->graph, v), *final = find_final(b, v, first, out_dx);
  TangentRule *rule = own_of(&n) ? NULL : tangent_rule(op_of(&n), n.op);
  if (!final) return;
  if (rule && !b->transposed) {
    c->graph->nodes.n = first;
    for (uint32_t i = 0; i < n.n_in; i++) out_dx[i] = (Value){0};
    transpose(b, v, dy, rule, out_dx);
    return;
  }
  const char *op = own_of(&n) ? own_of(&n)->name : op_of(&n)->name;
  diag_error(c, E609, n.span, "grad cannot differentiate `%s` a second time: `%s` has no gradient",
             op, op_of(final)->name);
  diag_note(c, b->span, "the gradient is needed here");
  diag_help(c, own_of(&n) ? "write its `backward` with operations that have a gradient, or call "
                            "`.detach()` here"
                          : "call `.detach()` here, if this part is constant");
}
