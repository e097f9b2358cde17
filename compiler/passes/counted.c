/* Means over the elements that count, such as the labels that are not ignored. */
#include "counted.h"
#include "compiler/rules/rules.h"

bool *needed_for(Compile *c, Value v)
{
  bool *out = arena_array(c->arena, bool, v.id + 1);
  out[v.id] = true;
  for (uint32_t id = v.id; id > 0; id--) {
    const Node *n = &c->graph->nodes.at[id];
    for (uint32_t i = 0; i < n->n_in && out[id]; i++) out[n->in[i].id] = true;
  }
  return out;
}

Value counted_empty(Compile *c, const Cursor *at, Value v)
{
  const bool *needed = needed_for(c, v);
  Value out = {0};
  for (uint32_t id = 1; id <= v.id; id++) {
    const Node *n = &c->graph->nodes.at[id];
    if (!needed[id] || n->op != OP_counted_mean || n->loop || ir_elements(n) > 1) continue;
    Value count = ir_reshape(c, at, n->in[1], NULL, 0);
    Value one = ir_binary(c, at, op_named("eq"), count, ir_number(c, at, 0));
    out = out.id ? ir_binary(c, at, op_named("logical_or"), out, one) : one;
  }
  return out;
}
