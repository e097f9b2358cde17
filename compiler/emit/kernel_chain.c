/* The elementwise nodes of a group, one statement each. What they read from memory is addressed by
 * strides over the shape of the nodes, so broadcasting, transposing and slicing are only other
 * strides; the frame around knows how a variable of its loops becomes an address. */
#include "kernel_parts.h"
#include <string.h>

static bool is_move(const Node *n)
{
  return op_info[n->op].tmpl == TMPL_move;
}

static bool is_computed(const Chain *ch, Value v) /* by this kernel */
{
  return ir_node(ch->k->g, value_root(ch->k->g, v))->group == ch->k->index;
}

static const Node *chain_node(const Chain *ch, uint32_t i)
{
  return ir_node(ch->k->g, ch->k->group->nodes[i]);
}

static bool in_chain(const Node *n)
{
  return op_info[n->op].tmpl == TMPL_map || is_move(n);
}

/* ---- loads --------------------------------------------------------------------------------------
 */

static uint32_t count_uses(const Node *n, uint32_t input)
{
  if (is_move(n)) return 1;
  uint32_t uses = 0;
  for (const char *code = op_info[n->op].code; (code = strchr(code, '$')); code++)
    uses += (uint32_t)(code[1] - '0') == input;
  return uses;
}

static Access operand_access(const Chain *ch, const Node *n, uint32_t input)
{
  if (is_move(n)) return access_moved(ch->k->c, n);
  return access_broadcast(&ch->space, value_shape(ch->k->g, n->in[input]));
}

/* The load of these bytes in this order; NULL if there is none yet. */
static Load *find_load(const Chain *ch, Value v, const Access *a)
{
  for (uint32_t i = 0; i < ch->loads.n; i++) {
    Load *l = &ch->loads.at[i];
    bool same = value_root(ch->k->g, l->value).id == value_root(ch->k->g, v).id;
    if (same && memcmp(&l->access, a, sizeof *a) == 0) return l;
  }
  return NULL;
}

static void add_load(Chain *ch, const Node *n, uint32_t input)
{
  Value v = n->in[input];
  Access a = operand_access(ch, n, input);
  Load *l = find_load(ch, v, &a);
  if (!l) {
    vec_push(ch->k->c->arena, &ch->loads, (Load){.value = v, .access = a});
    l = &ch->loads.at[ch->loads.n - 1];
  }
  l->uses += count_uses(n, input);
}

void chain_begin(Chain *ch, Kernel *k, Space space)
{
  *ch = (Chain){.k = k, .space = space};
  for (uint32_t i = 0; i < k->group->n; i++) {
    const Node *n = chain_node(ch, i);
    for (uint32_t j = 0; j < n->n_in && in_chain(n); j++)
      if (n->in[j].id && !is_computed(ch, n->in[j])) add_load(ch, n, j);
  }
}

/* What is used more than once gets a variable; else the load stands in the expression. */
static void put_load(Chain *ch, uint32_t i, const char *index)
{
  const Kernel *k = ch->k;
  Load *l = &ch->loads.at[i];
  l->text = load_operand(k, l->value, index);
  Value root = value_root(k->g, l->value);
  if (l->uses < 2 || is_literal(ir_node(k->g, root))) return;
  bool taken = k->group->anchor.id != 0; /* a row program has variables for what it loads itself */
  for (uint32_t j = 0; j < i; j++) taken |= value_root(k->g, ch->loads.at[j].value).id == root.id;
  const char *name = arena_printf(k->c->arena, taken ? "t%u_%u" : "t%u", root.id, i);
  EMIT(k->p, "const %s %s = %s;\n", local_type(ir_node(k->g, root)->dtype), name, l->text.text);
  l->text.text = name;
}

/* ---- nodes
 * --------------------------------------------------------------------------------------- */

static Operand operand(const Chain *ch, const Node *n, uint32_t input)
{
  Value v = n->in[input];
  if (!v.id) return (Operand){0};
  if (!is_computed(ch, v)) {
    Access a = operand_access(ch, n, input);
    return find_load(ch, v, &a)->text;
  }
  Value root = value_root(ch->k->g, v);
  bool real = dtype_is_float(ir_node(ch->k->g, root)->dtype);
  return (Operand){arena_printf(ch->k->c->arena, "t%u", root.id), real};
}

bool used_inside(const Kernel *k, Value v)
{
  for (uint32_t i = 0; i < k->group->n; i++) {
    const Node *n = ir_node(k->g, k->group->nodes[i]);
    for (uint32_t j = 0; j < n->n_in; j++)
      if (value_root(k->g, n->in[j]).id == v.id) return true;
  }
  return false;
}

void put_value(const Kernel *k, Value v, const char *expression, const char *index)
{
  const Node *n = ir_node(k->g, v);
  uint32_t out = argument_of(k, v);
  bool stored_only = out < k->args.n && !used_inside(k, v);
  if (!stored_only) expression = rounded(k, n->dtype, expression);
  EMIT(k->p, "const %s t%u = %s; // %%%u %s\n", local_type(n->dtype), v.id, expression, v.id,
       op_info[n->op].name);
  if (out == k->args.n) return;
  const char *name = arena_printf(k->c->arena, "t%u", v.id);
  bool exact = n->dtype == AMPC_I32 || n->dtype == AMPC_F32 || n->dtype == AMPC_I64;
  EMIT(k->p, "%s[%s] = %s;\n", k->arg_names[out], index, exact ? name : stored(k, n->dtype, name));
}

void chain_put(Chain *ch, const char *const *load_index, const char *index)
{
  const Kernel *k = ch->k;
  for (uint32_t i = 0; i < ch->loads.n; i++) put_load(ch, i, load_index[i]);
  for (uint32_t i = 0; i < k->group->n; i++) {
    const Node *n = chain_node(ch, i);
    if (!in_chain(n)) continue;
    Operand *in = arena_array(k->c->arena, Operand, n->n_in + 1);
    for (uint32_t j = 0; j < n->n_in; j++) in[j] = operand(ch, n, j);
    put_value(k, k->group->nodes[i], node_expression(k, n, in, index), index);
  }
}
