/* Elementwise groups and moves: one loop over the shape, one statement a node. What is read is
 * addressed by strides over that shape, so broadcasting, transposing and slicing are only other
 * strides; axes that all operands walk alike are joined, and what is left of the index arithmetic
 * is printed. */
#include "kernel_parts.h"
#include <string.h>

typedef struct Load { /* an operand that comes from memory */
  Value value;        /* as the node names it: an alias has its own shape */
  Access access;      /* over the whole shape */
  uint32_t uses;
  Operand text;
} Load;

typedef struct Map {
  Kernel *k;
  Space full, space; /* the shape, and what is left of it once axes are joined */
  VEC(Load) loads;
  Access *walks; /* of the loads, and last the one in order */
} Map;

static bool is_move(const Node *n)
{
  return op_info[n->op].tmpl == TMPL_move;
}

static bool inside(const Map *m, Value v)
{
  return ir_node(m->k->g, value_root(m->k->g, v))->group == m->k->index;
}

/* ---- loads --------------------------------------------------------------------------------------
 */

static uint32_t count_uses(const char *code, uint32_t input)
{
  uint32_t n = 0;
  for (; (code = strchr(code, '$')); code++) n += (uint32_t)(code[1] - '0') == input;
  return n;
}

static Load *find_load(Map *m, Value v, const Access *a)
{
  for (uint32_t i = 0; i < m->loads.n; i++) {
    Load *l = &m->loads.at[i];
    bool same = value_root(m->k->g, l->value).id == value_root(m->k->g, v).id;
    if (same && memcmp(&l->access, a, sizeof *a) == 0) return l;
  }
  vec_push(m->k->c->arena, &m->loads, (Load){.value = v, .access = *a});
  return &m->loads.at[m->loads.n - 1];
}

static Access operand_access(const Map *m, const Node *n, uint32_t input)
{
  if (is_move(n)) return access_moved(m->k->c, n);
  return access_broadcast(&m->full, ir_node(m->k->g, n->in[input]));
}

static void collect_loads(Map *m)
{
  for (uint32_t i = 0; i < m->k->group->n; i++) {
    const Node *n = ir_node(m->k->g, m->k->group->nodes[i]);
    for (uint32_t j = 0; j < n->n_in; j++) {
      if (!n->in[j].id || inside(m, n->in[j])) continue;
      Access a = operand_access(m, n, j);
      find_load(m, n->in[j], &a)->uses += count_uses(op_info[n->op].code, j);
    }
  }
}

/* ---- index arithmetic
 * ---------------------------------------------------------------------------- */

static void collapse(Map *m)
{
  uint32_t n = m->loads.n;
  m->walks = arena_array(m->k->c->arena, Access, n + 1);
  for (uint32_t i = 0; i < n; i++) m->walks[i] = m->loads.at[i].access;
  m->walks[n] = access_whole(&m->full);
  space_collapse(&m->space, m->walks, n + 1);
}

static const char *index_of(const Map *m, const Access *a)
{
  const Kernel *k = m->k;
  const Space *s = &m->space;
  const Access *whole = &m->walks[m->loads.n];
  if (a->offset == 0 && memcmp(a->stride, whole->stride, s->rank * sizeof *a->stride) == 0)
    return "i";
  if (s->rank < 2) return index_sum(k, index_part(k, s, a, 0, s->rank, "i"), NULL, NULL, a->offset);
  return index_sum(k, index_part(k, s, a, 0, s->rank - 1, "r"),
                   index_part(k, s, a, s->rank - 1, s->rank, "c"), NULL, a->offset);
}

static void begin_loop(const Map *m)
{
  const Kernel *k = m->k;
  const Space *s = &m->space;
  long long all = space_elements(s), columns = s->rank ? s->dim[s->rank - 1] : 1;
  if (s->rank < 2) {
    EMIT(k->p, "GRID_LOOP(%s, i, %lld) {\n", k->index_type, all);
    k->p->indent++;
  } else {
    EMIT(k->p, "GRID_ROWS(%s, r, c, %lld, %lld) {\n", k->index_type, all / columns, columns);
    k->p->indent++;
    EMIT(k->p, "const %s i = r * %lld + c;\n", k->index_type, columns);
  }
}

/* ---- statements
 * ---------------------------------------------------------------------------------- */

/* What is used more than once gets a variable; else the load stands in the expression. */
static void put_loads(Map *m)
{
  const Kernel *k = m->k;
  for (uint32_t i = 0; i < m->loads.n; i++) {
    Load *l = &m->loads.at[i];
    l->text = load_operand(k, l->value, index_of(m, &m->walks[i]));
    Value root = value_root(k->g, l->value);
    if (l->uses < 2 || is_literal(ir_node(k->g, root))) continue;
    const char *name = arena_printf(k->c->arena, "t%u", root.id);
    for (uint32_t j = 0; j < i; j++)
      if (value_root(k->g, m->loads.at[j].value).id == root.id)
        name = arena_printf(k->c->arena, "t%u_%u", root.id, i);
    EMIT(k->p, "const %s %s = %s;\n", local_type(ir_node(k->g, root)->dtype), name, l->text.text);
    l->text.text = name;
  }
}

static Operand operand(Map *m, const Node *n, uint32_t input)
{
  Value v = n->in[input];
  if (!v.id) return (Operand){0};
  if (inside(m, v)) {
    Value root = value_root(m->k->g, v);
    bool real = dtype_is_float(ir_node(m->k->g, root)->dtype);
    return (Operand){arena_printf(m->k->c->arena, "t%u", root.id), real};
  }
  Access a = operand_access(m, n, input);
  for (uint32_t i = 0; i < m->loads.n; i++) {
    const Load *l = &m->loads.at[i];
    bool same = value_root(m->k->g, l->value).id == value_root(m->k->g, v).id;
    if (same && memcmp(&l->access, &a, sizeof a) == 0) return l->text;
  }
  return (Operand){0};
}

static bool used_inside(const Map *m, Value v)
{
  for (uint32_t i = 0; i < m->k->group->n; i++) {
    const Node *n = ir_node(m->k->g, m->k->group->nodes[i]);
    for (uint32_t j = 0; j < n->n_in; j++)
      if (value_root(m->k->g, n->in[j]).id == v.id) return true;
  }
  return false;
}

static void put_node(Map *m, Value v)
{
  const Kernel *k = m->k;
  const Node *n = ir_node(k->g, v);
  Operand *in = arena_array(k->c->arena, Operand, n->n_in + 1);
  for (uint32_t i = 0; i < n->n_in; i++) in[i] = operand(m, n, i);
  const char *expression = node_expression(k, n, in, "i");
  uint32_t out = argument_of(k, v);
  bool kept = used_inside(m, v);
  if (kept || out == k->args.n) expression = rounded(k, n->dtype, expression);
  EMIT(k->p, "const %s t%u = %s; // %%%u %s\n", local_type(n->dtype), v.id, expression, v.id,
       op_info[n->op].name);
  if (out == k->args.n) return;
  const char *name = arena_printf(k->c->arena, "t%u", v.id);
  bool exact = n->dtype == AMPC_I32 || n->dtype == AMPC_F32 || n->dtype == AMPC_I64;
  EMIT(k->p, "%s[i] = %s;\n", k->arg_names[out], exact ? name : stored(k, n->dtype, name));
}

/* Bytes are moved as they are. */
static void put_move(Map *m, Value v)
{
  const Kernel *k = m->k;
  const Node *n = ir_node(k->g, v);
  uint32_t from = argument_of(k, n->in[0]);
  const char *to = k->arg_names[argument_of(k, v)];
  if (from == k->args.n) {
    const char *x = load_operand(k, n->in[0], "0").text;
    EMIT(k->p, "%s[i] = %s; // %%%u %s\n", to, stored(k, n->dtype, x), v.id, op_info[n->op].name);
    return;
  }
  EMIT(k->p, "%s[i] = %s[%s]; // %%%u %s\n", to, k->arg_names[from], index_of(m, &m->walks[0]),
       v.id, op_info[n->op].name);
}

void emit_map(Kernel *k)
{
  Value first = k->group->nodes[0];
  Map m = {.k = k, .full = space_of(ir_node(k->g, first))};
  m.space = m.full;
  collect_loads(&m);
  collapse(&m);
  begin_loop(&m);
  if (is_move(ir_node(k->g, first))) {
    put_move(&m, first);
  } else {
    put_loads(&m);
    for (uint32_t i = 0; i < k->group->n; i++) put_node(&m, k->group->nodes[i]);
  }
  k->p->indent--;
  EMIT(k->p, "}\n");
}
