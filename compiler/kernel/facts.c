/* The facts that determine the text of a group's kernel, as numbers: the fields of its command, and
 * the ops, types and formulas of its nodes. Groups with equal facts have the same kernel. So most
 * kernels are found equal without being printed.
 *
 * Values are numbered in the order in which they occur, so their identity does not matter. The
 * facts of a kernel without indices, such as a template, contain whole shapes. Such kernels may be
 * equal although their facts differ; key.c then compares their texts. Debug builds print every
 * kernel and check that equal facts give equal texts. */
#include "key.h"
#include <string.h>

struct KernelFacts {
  Compile *c;
  const Graph *g;
  VEC(uint64_t) words;
  uint32_t *number; /* node -> its number in these facts, from `first` on; smaller: no number yet */
  uint32_t first, n;
  uint32_t group, part; /* the numbers of the group and of the part whose facts are added */
  bool shapes;          /* shapes of values matter: the kernel has no indices */
  bool gaps;            /* results with gaps between rows have an index of their own */
  KernelArgs args;      /* arguments of the group; they identify streams */
};

/* Returns the facts of the compilation, created once: `number` has an entry for every node. */
KernelFacts *kernel_facts(Compile *c)
{
  if (c->facts) return c->facts;
  KernelFacts *f = c->facts = arena_new(c->arena, KernelFacts);
  *f = (KernelFacts){.c = c, .g = c->graph, .first = 1};
  f->number = arena_array(c->arena, uint32_t, f->g->nodes.n);
  return f;
}

static void add(KernelFacts *f, int64_t word)
{
  vec_push(f->c->arena, &f->words, (uint64_t)word);
}

static void add_dims(KernelFacts *f, const int64_t *dim, uint32_t rank)
{
  add(f, rank);
  for (uint32_t i = 0; i < rank; i++) add(f, dim[i]);
}

/* Adds the layout of a parameter; the arguments identify the parameter. */
static void add_param(KernelFacts *f, int64_t index)
{
  const Parameter *p = &f->g->params.at[index];
  add_dims(f, p->dim, p->rank);
  add(f, (int64_t)p->dtype << 2 | p->channels_last << 1 | p->buffer);
}

static void add_attribute(KernelFacts *f, const Node *n, uint32_t i)
{
  AttrKind kind = op_of(n)->signature.attr[i].kind;
  if (kind == ATTR_param)
    add_param(f, n->attr[i].i);
  else if (kind != ATTR_loop)
    add(f, n->attr[i].i);
}

static void add_attributes(KernelFacts *f, const Node *n)
{
  for (uint32_t i = 0; i < op_of(n)->signature.n_attrs; i++) add_attribute(f, n, i);
}

/* Adds what stands in a formula. */
static void add_formula(KernelFacts *f, const Node *n, const Formula *x)
{
  x = code_standing(n, x);
  add(f, (int64_t)x->kind << 32 | x->index);
  if (x->name) add(f, (int64_t)XXH3_64bits(x->name, strlen(x->name)));
  if (x->kind == FORMULA_attribute) add_attribute(f, n, x->index);
  if (x->kind == FORMULA_size) add(f, attr_int(n, "rows"));
  if (x->kind == FORMULA_size) add_dims(f, ir_in(f->c, n, 0)->dim, 2);
  for (uint32_t i = 0; i < x->n; i++) add_formula(f, n, x->in[i]);
}

/* Adds the code of a node, or its attributes if its op has no code. */
static void add_code(KernelFacts *f, const Node *n)
{
  const OpCode *code = &op_of(n)->code;
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    bool stands = code_stands(n, s->condition);
    add(f, (int64_t)s->kind << 1 | stands);
    if (stands) add_formula(f, n, s->value);
  }
  if (!code->n_statements) add_attributes(f, n);
  if (op_is_step(n)) add_dims(f, (int64_t[]){attr_int(n, "length"), attr_int(n, "inner")}, 2);
}

static void add_value(KernelFacts *f, Value v);

/* True if readers of the node read its input instead, because the node has no kernel of its own. */
static bool is_looked_through(const Graph *g, const Node *n)
{
  return op_of(n)->tmpl == TMPL_alias || n->folded || is_widening(g, n) || op_is_step(n);
}

/* Adds a value. Of one that another kernel has computed, only its type and shape matter. */
static void add_node(KernelFacts *f, const Node *n)
{
  bool inside = n->group == f->group && n->part == f->part, literal = op_has(n, T_literal);
  bool through = f->shapes && is_looked_through(f->g, n);
  add(f, (int64_t)n->dtype << 4 | inside << 3 | through << 2 | literal << 1 | n->folded);
  if (inside || through || literal) add(f, n->op);
  if (inside) add(f, (int64_t)(intptr_t)n->row);
  if (inside) add(f, n->place.space);
  if (inside) add(f, f->shapes ? n->layout : f->gaps && n->pitch);
  if (literal || through) add_attributes(f, n);
  if (!f->shapes) return;
  add_dims(f, n->dim, n->rank);
  add(f, n->pitch);
  if (through && n->n_in) add_value(f, n->in[0]);
}

static void add_value(KernelFacts *f, Value v)
{
  uint32_t known = f->number[v.id];
  bool is_new = known < f->first;
  if (is_new) f->number[v.id] = known = f->first + f->n++;
  add(f, known - f->first);
  if (is_new) add_node(f, ir_node(f->g, v));
}

/* Adds an operand of n. If the kernel has indices, these say all about views and moves before it.
 * Row ops convert all floats alike. Among floats, the numbers 1 and 1.0 are the same. */
static void add_operand(KernelFacts *f, const Node *n, Value v)
{
  DType type = ir_node(f->g, v)->dtype;
  const Node *root = ir_node(f->g, value_root(f->g, v));
  bool converts = !f->shapes && !op_has(n, T_as_is | T_casts) && ir_meets_floats(f->g, n);
  if (converts && op_has(root, T_literal)) {
    bool real = root->op == OP_number;
    Attr number = {.f = real ? attr_float(root, "value") : (double)attr_int(root, "value")};
    add(f, -1);
    add(f, number.i);
    return;
  }
  add_value(f, f->shapes ? v : value_root(f->g, v));
  if (!f->shapes) add(f, op_of(n)->tmpl == TMPL_row && dtype_is_float(type) ? AMPC_F32 : type);
}

static void add_index(KernelFacts *f, const Index *x)
{
  add(f, x->offset << 8 | x->n);
  for (uint32_t i = 0; i < x->n; i++) {
    const IndexTerm *t = &x->term[i];
    add(f, (int64_t)t->of << 1 | t->each);
    add(f, t->over);
    add(f, t->size);
    add(f, t->stride);
  }
}

/* Adds the indices at which node i of the group reads. */
static void add_indices(KernelFacts *f, const KernelPart *part, uint32_t i)
{
  const NodeAccess *a = &part->access->node[i];
  uint32_t n_in = ir_node(f->g, part->group->nodes[i])->n_in;
  if (part->rows) add(f, is_row_element(f->g, part->rows, part->group->nodes[i]));
  for (uint32_t k = 0; k < n_in; k++) add_index(f, &a->element[k]);
  for (uint32_t k = 0; k < n_in && a->row; k++) add_index(f, &a->row[k]);
}

/* Adds how the kernel's threads walk. */
static void add_walk(KernelFacts *f, const KernelPart *part)
{
  if (part->map) {
    add_dims(f, part->map->left.dim, part->map->left.rank);
    add(f, (int64_t)part->map->vector << 32 | part->map->rows);
  } else {
    const RowLoops *r = part->rows;
    add_dims(f, (int64_t[]){r->shape.outer, r->shape.length, r->shape.inner, r->shape.parts}, 4);
    add_dims(f, (int64_t[]){r->shape.part_rows, r->tile.vector, r->tile.lanes, r->vector}, 4);
    add(f, (int64_t)r->walk.threads << 8 | r->columns << 2 | r->odd << 1 | r->flat);
  }
  const KernelAccess *a = part->access;
  f->gaps = false;
  for (uint32_t i = 0; i < part->group->n && !index_equal(&a->pitched, &a->dense); i++)
    f->gaps |= ir_node(f->g, part->group->nodes[i])->pitch != 0;
  add(f, f->gaps);
  if (f->gaps) add_index(f, &a->pitched);
}

/* Adds the stream, an argument. Kernels of evaluations key random numbers differently. */
static void add_draw(KernelFacts *f, const Node *n)
{
  const KernelArg stream = {.role = ARG_stream, .place = {AMPC_NONE, n->stream}};
  add(f, same_argument(&f->args, &stream));
  add(f, f->g->blocks.at[n->block].kind == AMPC_TRAIN);
  add(f, n->draws.each);
  add(f, n->draws.span);
  add(f, n->draws.skip);
}

static void add_own_node(KernelFacts *f, Value v)
{
  const Node *n = ir_node(f->g, v);
  bool moves = !f->shapes && op_of(n)->tmpl == TMPL_move; /* only the index depends on them */
  add_value(f, v);
  if (!moves) add_code(f, n);
  add(f, op_is_wide(f->c, n));
  if (f->shapes) add(f, f->g->blocks.n && f->g->blocks.at[n->block].accumulate > 1);
  if (op_draws(n)) add_draw(f, n);
  add_value(f, n->over);
  add(f, n->n_in);
  for (uint32_t i = 0; i < n->n_in; i++) add_operand(f, n, n->in[i]);
}

static void add_argument(KernelFacts *f, const KernelArg *a)
{
  add(f, (int64_t)a->role << 32 | (int64_t)a->type << 16 | a->only_read << 8 |
             (a->place.space == AMPC_STATE));
  add_value(f, a->value);
  add_value(f, a->over);
}

/* Adds the arguments, and for each part the indices of its arguments in the launch. */
static void add_arguments(KernelFacts *f, uint32_t group)
{
  const Command *command = command_of(f->g, group);
  add(f, f->args.n);
  for (uint32_t i = 0; i < f->args.n; i++) add_argument(f, &f->args.at[i]);
  for (uint32_t i = 0; i < command->n_parts; i++) {
    const KernelArgs *own = &command->parts[i].args;
    for (uint32_t k = 0; k < own->n; k++) add(f, same_argument(&f->args, &own->at[k]));
  }
}

static void add_part(KernelFacts *f, const KernelPart *part)
{
  const Group *p = part->group;
  const Node *first = ir_node(f->g, p->nodes[0]);
  f->group = first->group;
  f->part = first->part;
  f->shapes = !part->map && !part->rows;
  add(f, p->n);
  if (!f->shapes) add_walk(f, part);
  for (uint32_t i = 0; i < p->n; i++) {
    add_own_node(f, p->nodes[i]);
    if (!f->shapes) add_indices(f, part, i);
  }
  add_value(f, p->anchor);
}

/* Adds all fields of d except those that only messages or the library use. */
static void add_convolution(KernelFacts *f, const ampc_conv *d)
{
  add(f, (int64_t)d->kind << 8 | d->accumulate << 2 | d->tf32 << 1 | d->has_bias);
  add(f, (int64_t)d->x_type << 48 | (int64_t)d->w_type << 32 | (int64_t)d->y_type << 16 |
             (int64_t)d->bias_type);
  add_dims(f, (int64_t[]){d->n, d->c, d->k, d->groups, d->grid, d->block}, 6);
  const int64_t *const sizes[] = {d->in, d->kernel, d->out, d->stride, d->pad, d->dilation};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) add_dims(f, sizes[i], d->spatial);
}

static void begin(KernelFacts *f, const KernelArgs *args)
{
  f->words.n = 0;
  f->first += f->n;
  f->n = 0;
  f->args = *args;
}

XXH128_hash_t facts_of_part(KernelFacts *f, const KernelPart *part)
{
  begin(f, &part->args);
  add_part(f, part);
  for (uint32_t i = 0; i < f->args.n; i++) add_argument(f, &f->args.at[i]);
  return XXH3_128bits(f->words.at, f->words.n * sizeof *f->words.at);
}

XXH128_hash_t facts_of(KernelFacts *f, uint32_t group)
{
  const Command *command = command_of(f->g, group);
  const Group *p = &f->g->groups.at[group];
  begin(f, &command->whole.args);
  if (command->columns) {
    add_convolution(f, &command->conv);
  } else {
    uint32_t grid = command->whole.at.grid;
    add(f, (int64_t)p->n_parts << 33 | (int64_t)p->last << 1 | p->in_turn);
    add(f, command->far);
    add(f, command->whole.at.block);
    if (p->n_parts) add(f, grid <= p->n_parts ? grid : p->n_parts + 1);
    for (uint32_t i = 0; i < command->n_parts; i++) {
      const KernelPart *part = &command->parts[i];
      if (p->n_parts) add(f, part->group->meets << 1 | (part->at.grid == 1));
      add_part(f, part);
    }
    add_arguments(f, group);
  }
  return XXH3_128bits(f->words.at, f->words.n * sizeof *f->words.at);
}
