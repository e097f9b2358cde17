/* The elementwise nodes of a group, one statement each. What they read from memory is addressed by
 * strides over the shape of the nodes, so broadcasting, transposing and slicing are only other
 * strides; the frame around knows how a variable of its loops becomes an address. */
#include "kernel_parts.h"
#include <string.h>

static bool is_move(const Node *n)
{
  return op_of(n)->tmpl == TMPL_move;
}

static bool is_row(const Node *n)
{
  return op_of(n)->tmpl == TMPL_row;
}

/* ---- loads ---- */

/* How often the text of node n contains its operand. In `a ? b : c` a load would be done for some
 * elements only, and compilers do not vectorise loops whose loads depend on data: it counts twice,
 * so that it gets a variable. */
uint32_t operand_uses(const Node *n, uint32_t input)
{
  if (is_move(n)) return 1;
  const CodeStatement *s = &op_of(n)->code.statements[0];
  return code_reads(n, s, PIECE_element, input) * (code_chooses(n, s) ? 2 : 1);
}

/* The load of these bytes at this place; NULL if there is none yet. Aliases of one value share
 * it. */
static Load *find_load(const Chain *ch, Value v, const char *index)
{
  for (uint32_t i = 0; i < ch->loads.n; i++) {
    Load *l = &ch->loads.at[i];
    bool same = value_root(ch->k->g, l->value).id == value_root(ch->k->g, v).id;
    if (same && strcmp(l->index, index) == 0) return l;
  }
  return NULL;
}

void chain_begin(Chain *ch, Kernel *k, LoopShape space, Address *address, const void *frame)
{
  *ch = (Chain){.k = k, .space = space, .address = address, .frame = frame};
}

/* v is a local variable of this loop already. */
static bool chain_computes(const Chain *ch, Value v)
{
  Value root = value_root(ch->k->g, v);
  for (uint32_t i = 0; i < ch->nodes.n; i++)
    if (ch->nodes.at[i].id == root.id) return true;
  return false;
}

void chain_use(Chain *ch, Value v, const char *index, uint32_t times)
{
  if (!v.id || !times || chain_computes(ch, v)) return;
  Load *l = find_load(ch, v, index);
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
    Access a = access_operand(ch->k->c, &ch->space, n, i);
    chain_use(ch, n->in[i], ch->address(ch->frame, &a), operand_uses(n, i));
  }
}

/* "const real t12 = from_f16(x[i]);" for what is used more than once; else the load stands in the
 * expression. What this kernel overwrites is loaded first in any case. The same value at a second
 * place gets a suffix: t12_1. */
static void put_load(Chain *ch, uint32_t i)
{
  const Kernel *k = ch->k;
  Load *l = &ch->loads.at[i];
  l->text = load_operand(k, l->value, l->index);
  Value root = value_root(k->g, l->value);
  if (op_has(ir_node(k->g, root), T_literal)) return;
  if (l->uses < 2 && !argument_is_reused(k, root)) return;
  bool taken = false;
  for (uint32_t j = 0; j < i; j++) taken |= value_root(k->g, ch->loads.at[j].value).id == root.id;
  const char *name = arena_printf(k->c->arena, taken ? "t%u_%u" : "t%u", root.id, i);
  EMIT(k->p, "const %s %s = %s;\n", local_type(ir_node(k->g, root)->dtype), name, l->text.text);
  l->text.text = name;
}

void chain_put_loads(Chain *ch)
{
  for (uint32_t i = 0; i < ch->loads.n; i++)
    if (!ch->loads.at[i].text.text) put_load(ch, i);
}

/* ---- nodes ---- */

Operand chain_operand(const Chain *ch, Value v, const char *index)
{
  if (!v.id) return (Operand){0};
  if (!chain_computes(ch, v)) {
    const Load *l = find_load(ch, v, index);
    if (!l || !l->text.text) kernel_bug(ch->k, v, "it is read where nothing has loaded it");
    return l->text;
  }
  Value root = value_root(ch->k->g, v);
  bool real = dtype_is_float(ir_node(ch->k->g, root)->dtype);
  return (Operand){arena_printf(ch->k->c->arena, "t%u", root.id), real};
}

/* By another node of the group. */
static bool used_inside(const Kernel *k, Value v)
{
  for (uint32_t i = 0; i < k->group->n; i++) {
    const Node *n = ir_node(k->g, k->group->nodes[i]);
    for (uint32_t j = 0; j < n->n_in; j++)
      if (value_root(k->g, n->in[j]).id == v.id) return true;
  }
  return false;
}

/* grad_accumulate is "grad[i] += t9;". A value that is stored and not read again is rounded by the
 * store alone; one that is read again must be rounded first, so that readers see what memory would
 * have given them: fused or not, the same bits. */
void put_value(const Kernel *k, Value v, const char *expression, const char *index)
{
  const Node *n = ir_node(k->g, v);
  uint32_t out = argument_of(k, v);
  expression = fold_line(k, expression);
  if (op_has(n, T_effect)) {
    EMIT_STATEMENT(k->p, "%s += %s; // %%%u %s\n", element_place(k, pointer_of(k, v), index),
                   expression, v.id, op_of(n)->name);
    return;
  }
  bool stored_only = out < k->args.n && !k->looks_ahead && !used_inside(k, v);
  bool exact = dtype_is_float(n->dtype) && !needs_rounding(k, n);
  if (!stored_only && !exact) expression = rounded(k, n->dtype, expression);
  EMIT_STATEMENT(k->p, "const %s t%u = %s; // %%%u %s\n", local_type(n->dtype), v.id, expression,
                 v.id, op_of(n)->name);
  if (out == k->args.n || k->looks_ahead) return;
  const char *name = arena_printf(k->c->arena, "t%u", v.id);
  bool plain = n->dtype == AMPC_I32 || n->dtype == AMPC_F32 || n->dtype == AMPC_I64;
  EMIT(k->p, "%s = %s;%s\n", element_place(k, out, index), plain ? name : stored(k, n->dtype, name),
       n->over.id ? " // in place" : "");
}

void chain_put_node(Chain *ch, Value v, const char *index)
{
  const Kernel *k = ch->k;
  const Node *n = ir_node(k->g, v);
  Operand *in = arena_array(k->c->arena, Operand, n->n_in + 1);
  for (uint32_t i = 0; i < n->n_in; i++) {
    Access a = access_operand(ch->k->c, &ch->space, n, i);
    if (n->in[i].id && operand_uses(n, i))
      in[i] = chain_operand(ch, n->in[i], ch->address(ch->frame, &a));
  }
  /* its number, where it is one of a vector's */
  const char *element = k->by_vectors ? arena_printf(k->c->arena, "(%s + j)", index) : index;
  put_value(k, v, node_expression(k, n, in, element), index);
}
