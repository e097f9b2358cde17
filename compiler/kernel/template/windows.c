/* Prints the operands of window templates (T_windows). A line `$operands_x` is where element i of
 * input x is needed. It becomes the loads of a vector of channels. `$values` becomes, for each j of
 * the vector, the elementwise nodes that compute x, if pass fuse has put them into this kernel.
 * `$x` is the element. */
#include "template.h"

/* True if the value `of` needs v, which the same kernel computes. */
static bool needs(const Kernel *k, Value of, Value v)
{
  Value root = value_root(k->g, of);
  const Node *n = ir_node(k->g, root);
  if (root.id == v.id) return true;
  if (argument_of(k, root) < k->args.n || op_of(n)->tmpl != TMPL_map) return false;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id && needs(k, n->in[i], v)) return true;
  return false;
}

const char *put_operands(Template *t, uint32_t input)
{
  Kernel *k = t->k;
  Chain *ch = &t->chain;
  Value x = t->n->in[input];
  chain_begin(ch, k);
  for (uint32_t i = 0; i < k->group->n; i++)
    if (needs(k, x, k->group->nodes[i])) chain_add(ch, k->group->nodes[i]);
  chain_use(ch, x, index_at(VAR_i), 1);
  k->vectors.n = 0;
  const char *width = arena_printf(k->c->arena, "%u", t->windows.vector);
  for (uint32_t i = 0; i < ch->loads.n; i++) {
    const Load *l = &ch->loads.at[i];
    if (l->index.n) put_vector(k, width, argument_of(k, l->value), &l->index);
  }
  return NULL;
}

const char *put_values(Template *t)
{
  Chain *ch = &t->chain;
  chain_put_loads(ch);
  for (uint32_t i = 0; i < ch->nodes.n; i++) chain_put_node(ch, ch->nodes.at[i], index_at(VAR_i));
  return NULL;
}

const char *windows_value(const Kernel *k, const Chain *ch, uint32_t input)
{
  Value x = ir_node(k->g, k->group->anchor)->in[input];
  Operand o = chain_operand(ch, x, index_at(VAR_i));
  return dtype_is_float(ir_node(k->g, x)->dtype) ? as_real(k, o).text : o.text;
}

/* Returns the group's result of the kind: the argmax (attribute `argmax` is set) or the value. */
Value windows_result(const Template *t, bool argmax)
{
  for (uint32_t i = 0; i < t->k->group->n; i++) {
    const Node *n = ir_node(t->k->g, t->k->group->nodes[i]);
    uint32_t at;
    bool is_argmax = attr_find(op_of(n), "argmax", &at) && n->attr[at].i;
    if (op_has(n, T_windows) && is_argmax == argmax) return t->k->group->nodes[i];
  }
  return (Value){0};
}

const char *windows_type(const Template *t, bool argmax)
{
  return element_type(&t->k->args.at[pointer_of(t->k, windows_result(t, argmax))]);
}

/* Returns how many windows lie between the starts of the first and last one that touch a tile. */
int64_t windows_reach(const Template *t, const char *kernel, const char *dil, const char *stride)
{
  return (attr_int(t->n, kernel) - 1) * attr_int(t->n, dil) / attr_int(t->n, stride);
}
