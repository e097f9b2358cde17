/* Prints the elementwise nodes of a group, one statement each. The command has an index for each
 * operand in memory, so broadcasting, transposing and slicing are just other indices. */
#include "kernel_parts.h"

static bool is_move(const Node *n)
{
  return op_of(n)->tmpl == TMPL_move;
}

static bool is_row(const Node *n)
{
  return op_of(n)->tmpl == TMPL_row;
}

/* ---- loads ---- */

/* Returns how often the text of node n contains its operand; 0: only its shape is read. In `a ? b :
 * c` the load would happen only for some elements, and compilers do not vectorise loops whose loads
 * depend on data. So operands of `a ? b : c` count twice, which gives them a variable. */
static uint32_t operand_uses(const Node *n, uint32_t input)
{
  if (is_move(n)) return 1;
  const OpCode *code = &op_of(n)->code;
  uint32_t uses = 0;
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const Formula *value = code->statements[i].value;
    uses += code_reads(n, value, FORMULA_element, input) * (code_chooses(n, value) ? 2 : 1);
  }
  return uses;
}

/* Returns the load of these bytes at this index, or NULL. Aliases of one value share a load. */
static Load *find_load(const Chain *ch, Value v, const Index *index)
{
  for (uint32_t i = 0; i < ch->loads.n; i++) {
    Load *l = &ch->loads.at[i];
    bool same = value_root(ch->k->g, l->value).id == value_root(ch->k->g, v).id;
    if (same && index_equal(&l->index, index)) return l;
  }
  return NULL;
}

const NodeAccess *access_of(const Kernel *k, Value v)
{
  uint32_t i = 0;
  while (k->group->nodes[i].id != v.id) i++;
  return &k->part->access->node[i];
}

void chain_begin(Chain *ch, Kernel *k)
{
  *ch = (Chain){.k = k};
}

/* True if v is already a local variable of this loop. */
static bool chain_computes(const Chain *ch, Value v)
{
  Value root = value_root(ch->k->g, v);
  for (uint32_t i = 0; i < ch->nodes.n; i++)
    if (ch->nodes.at[i].id == root.id) return true;
  return false;
}

void chain_use(Chain *ch, Value v, Index index, uint32_t times)
{
  if (!v.id || !times || chain_computes(ch, v)) return;
  Load *l = find_load(ch, v, &index);
  if (!l) {
    vec_push(ch->k->c->arena, &ch->loads, (Load){.value = v, .index = index});
    l = &ch->loads.at[ch->loads.n - 1];
  }
  l->uses += times;
}

void chain_add(Chain *ch, Value v)
{
  const Node *n = ir_node(ch->k->g, v);
  vec_push(ch->k->c->arena, &ch->nodes, v);
  for (uint32_t i = 0; i < n->n_in && !is_row(n); i++) {
    if (!n->in[i].id || chain_computes(ch, n->in[i])) continue;
    chain_use(ch, n->in[i], access_of(ch->k, v)->element[i], operand_uses(n, i));
  }
}

/* True if one of the first n loads has a variable of this value. */
static bool has_variable(const Chain *ch, uint32_t n, Value root)
{
  bool any = false;
  for (uint32_t i = 0; i < n; i++)
    any =
        any || (ch->loads.at[i].named && value_root(ch->k->g, ch->loads.at[i].value).id == root.id);
  return any;
}

/* Prints "const real t12 = from_f16(x[i]);" for a load that is used more than once; otherwise the
 * load is part of the expression. A value that this kernel overwrites is always loaded first. The
 * load of a value at a second index has a suffix: t12_1. */
static void put_load(Chain *ch, uint32_t i)
{
  const Kernel *k = ch->k;
  Load *l = &ch->loads.at[i];
  l->text = load_operand(k, l->value, &l->index);
  Value root = value_root(k->g, l->value);
  if (op_has(ir_node(k->g, root), T_literal)) return;
  if (l->uses < 2 && !argument_is_reused(k, root)) return;
  const Load *before = ch->around ? find_load(ch->around, l->value, &l->index) : NULL;
  if (before && before->named) {
    l->text.text = before->text.text;
    return;
  }
  bool taken = false;
  for (uint32_t j = 0; j < i; j++) taken |= value_root(k->g, ch->loads.at[j].value).id == root.id;
  uint32_t others = ch->around ? ch->around->loads.n : 0, number = i;
  if (others && has_variable(ch->around, others, root)) taken = true, number += others;
  const char *name =
      arena_printf(k->c->arena, taken ? "t%u_%u" : "t%u", value_number(k, root), number);
  EMIT(k->p, "const %s %s = %s;\n", local_type(ir_node(k->g, root)->dtype), name, l->text.text);
  l->text.text = name;
  l->named = true;
}

void chain_put_loads(Chain *ch)
{
  for (uint32_t i = 0; i < ch->loads.n; i++)
    if (!ch->loads.at[i].text.text) put_load(ch, i);
}

/* ---- nodes ---- */

Operand chain_operand(const Chain *ch, Value v, Index index)
{
  if (!v.id) return (Operand){0};
  if (!chain_computes(ch, v)) {
    const Load *l = find_load(ch, v, &index);
    if (!l || !l->text.text) kernel_bug(ch->k, v, "it is read where nothing has loaded it");
    return l->text;
  }
  Value root = value_root(ch->k->g, v);
  bool real = dtype_is_float(ir_node(ch->k->g, root)->dtype);
  return (Operand){.text = arena_printf(ch->k->c->arena, "t%u", value_number(ch->k, root)),
                   .real = real};
}

/* True if another node of the group uses v. */
static bool used_inside(const Kernel *k, Value v)
{
  for (uint32_t i = 0; i < k->group->n; i++) {
    const Node *n = ir_node(k->g, k->group->nodes[i]);
    for (uint32_t j = 0; j < n->n_in; j++)
      if (value_root(k->g, n->in[j]).id == v.id) return true;
  }
  return false;
}

/* Prints the statement of v. grad_accumulate is "grad[i] += t9;". A value that is stored and not
 * read again is rounded by the store alone. A value that is read again is rounded first, so that
 * its readers get what a load would return: the bits do not depend on fusion. */
void put_value(const Kernel *k, Value v, const char *expression, const Index *index)
{
  const Node *n = ir_node(k->g, v);
  uint32_t out = argument_of(k, v);
  index = result_index(k, out, index);
  if (op_has(n, T_effect)) {
    EMIT_STATEMENT(k->p, "%s += %s; // %%%u %s\n", element_place(k, pointer_of(k, v), index),
                   expression, v.id, op_of(n)->name);
    return;
  }
  bool stored_only = out < k->args.n && !k->looks_ahead && !used_inside(k, v);
  bool exact = dtype_is_float(n->dtype) && !needs_rounding(k, n), rounds = !stored_only && !exact;
  if (rounds) expression = rounded(k, n->dtype, expression);
  uint32_t number = value_number(k, v);
  EMIT_STATEMENT(k->p, "const %s t%u = %s; // %%%u %s\n", local_type(n->dtype), number, expression,
                 v.id, op_of(n)->name);
  if (out == k->args.n || k->looks_ahead) return;
  const char *name = arena_printf(k->c->arena, "t%u", number);
  bool plain = n->dtype == AMPC_I32 || n->dtype == AMPC_F32 || n->dtype == AMPC_I64;
  EMIT(k->p, "%s = %s;%s\n", element_place(k, out, index),
       plain ? name : stored_at(k, out, index, n->dtype, name, rounds),
       n->over.id ? " // in place" : "");
}

void chain_put_node(Chain *ch, Value v, Index index)
{
  const Kernel *k = ch->k;
  const Node *n = ir_node(k->g, v);
  Operand *in = arena_array(k->c->arena, Operand, n->n_in + 1);
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id && operand_uses(n, i))
      in[i] = chain_operand(ch, n->in[i], access_of(k, v)->element[i]);
  put_value(k, v, node_expression(k, n, in, &index), &index);
}
