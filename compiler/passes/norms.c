/* See norms.h. With options.norms the kernel of an update also sums the squares of the new weights
 * and of their changes: it has both in registers. So the norms cost neither memory nor another walk
 * over the weights. If an optimizer has several groups, the gradients of each are read once more,
 * because the sums that clip_norm and the test for overflow use do not end where a group ends, and
 * must not change. */
#include "norms.h"
#include "compiler/graph/optimizers.h"

Value norm_partials(Compile *c, const Node *minimize, Value scale)
{
  Cursor at = ir_cursor_at(minimize, WHY_state);
  int64_t optimizer = attr_int(minimize, "optimizer");
  const Optimizer *o = &c->graph->optimizers.at[optimizer];
  if (optimizer_slices(c->graph, o) == 1)
    return ir_append(c, &at, OP_grad_norm, &scale, 1, ATTRS({"optimizer", {.i = optimizer}}));
  Value *parts = arena_array(c->arena, Value, o->groups.n);
  uint32_t n = 0;
  for (uint32_t i = 0; i < o->groups.n; i++)
    if (optimizer_has_group(c->graph, optimizer, i))
      parts[n++] = ir_append(c, &at, OP_grad_norm, &scale, 1,
                             ATTRS({"optimizer", {.i = optimizer}}, {"of", {.i = i}}));
  Value own = n == 1 ? parts[0] : ir_append(c, &at, OP_cat, parts, n, NULL);
  return ir_append(c, &at, OP_member_rows, &own, 1, NULL);
}

Value *norms_of_gradients(Compile *c, const Node *minimize, Value scale, Value partials)
{
  const Graph *g = c->graph;
  Cursor at = ir_cursor_at(minimize, WHY_state);
  int64_t optimizer = attr_int(minimize, "optimizer");
  uint32_t groups = g->optimizers.at[optimizer].groups.n, n = 0, k = 0;
  Value *out = arena_array(c->arena, Value, groups);
  for (uint32_t i = 0; i < groups; i++) n += optimizer_has_group(g, optimizer, i);
  if (ir_node(g, partials)->op == OP_member_rows) partials = ir_node(g, partials)->in[0];
  bool apart = ir_node(g, partials)->op == OP_cat; /* of slices: each group has its own sums */
  for (uint32_t i = 0; i < groups; i++) {
    if (!optimizer_has_group(g, optimizer, i)) continue;
    if (n == 1)
      out[i] = partials;
    else if (apart)
      out[i] = ir_node(g, partials)->in[k++];
    else
      out[i] = ir_append(c, &at, OP_grad_norm, &scale, 1,
                         ATTRS({"optimizer", {.i = optimizer}}, {"of", {.i = i}}));
  }
  return out;
}

typedef VEC(Value) Values;

/* Adds the sums of the groups with the key of group `key`, and returns their rows. */
static int64_t add_sums(Compile *c, int64_t optimizer, uint32_t key, const Value *from, Values *out)
{
  const Optimizer *o = &c->graph->optimizers.at[optimizer];
  int64_t rows = 0;
  for (uint32_t i = 0; i < o->groups.n; i++) {
    if (o->groups.at[i].settings != key || !optimizer_has_group(c->graph, optimizer, i)) continue;
    vec_push(c->arena, out, from[i]);
    rows += ir_node(c->graph, from[i])->dim[0];
  }
  return rows;
}

void norms_append(Compile *c, const Node *minimize, const Value *gradients, const Value *updates)
{
  Cursor at = ir_cursor_at(minimize, WHY_state);
  int64_t optimizer = attr_int(minimize, "optimizer"), metric = attr_int(minimize, "updates");
  const Optimizer *o = &c->graph->optimizers.at[optimizer];
  for (uint32_t key = 0; key < o->groups.n; key++) {
    Values parts = {0};
    int64_t grads = add_sums(c, optimizer, key, gradients, &parts);
    int64_t rows = grads + add_sums(c, optimizer, key, updates, &parts);
    int64_t own = metric;
    metric += o->groups.at[key].settings == key && o->groups.at[key].logged;
    if (!rows) continue;
    Value sums = ir_append(c, &at, OP_cat, parts.at, parts.n, NULL);
    if (optimizer_slices(c->graph, o) > 1) sums = ir_append(c, &at, OP_member_rows, &sums, 1, NULL);
    Value lr = minimize->in[1 + key * optimizer_of(o)->n_settings];
    ir_append(c, &at, OP_update_norms, (Value[]){sums, lr}, 2,
              ATTRS({"optimizer", {.i = optimizer}}, {"metric", {.i = own}}, {"rows", {.i = rows}},
                    {"grads", {.i = grads}}));
  }
}
