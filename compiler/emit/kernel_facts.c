/* The facts that determine the text of a group's kernel, as numbers. Groups with equal facts have
 * the same kernel, so only the first of these groups is printed to get its key. Most layers of a
 * net occur many times.
 *
 * Values are numbered in the order in which they occur, so their identity does not matter. The
 * facts may be too detailed: if they differ, the texts are compared. Debug builds print every
 * kernel and check that equal facts give equal texts. */
#include "kernel_key.h"
#include <string.h>

struct KernelFacts {
  Compile *c;
  const Graph *g;
  VEC(uint64_t) words;
  uint32_t *number; /* node -> its number in these facts, from `first` on; smaller: no number yet */
  uint32_t first, n;
  uint32_t part;   /* the part's number, if these are the facts of a part */
  KernelArgs args; /* arguments of the group; they identify streams */
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

static void add_attributes(KernelFacts *f, const Node *n)
{
  const OpSignature *s = &op_of(n)->signature;
  for (uint32_t i = 0; i < s->n_attrs; i++) {
    if (s->attr[i].kind == ATTR_param)
      add_param(f, n->attr[i].i);
    else
      add(f, n->attr[i].i);
  }
}

static void add_value(KernelFacts *f, Value v);

/* True if readers of the node read its input instead, because the node has no kernel of its own. */
static bool is_looked_through(const Graph *g, const Node *n)
{
  return op_of(n)->tmpl == TMPL_alias || n->folded || is_widening(g, n) || op_is_step(n);
}

static void add_node(KernelFacts *f, const Node *n)
{
  add(f,
      (int64_t)n->op << 32 | (int64_t)n->dtype << 24 | n->layout << 16 | n->weak << 8 | n->folded);
  add(f, (int64_t)n->place.space);
  add(f, n->pitch);
  add(f, (int64_t)(intptr_t)n->row);
  add_dims(f, n->dim, n->rank);
  if (op_has(n, T_literal) || n->folded) add_attributes(f, n);
  if (is_looked_through(f->g, n) && n->n_in) add_value(f, n->in[0]);
}

static void add_value(KernelFacts *f, Value v)
{
  uint32_t known = f->number[v.id];
  bool is_new = known < f->first;
  if (is_new) f->number[v.id] = known = f->first + f->n++;
  add(f, known - f->first);
  if (is_new) add_node(f, ir_node(f->g, v));
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
  add_value(f, v);
  add_attributes(f, n);
  add(f, n->part - f->part);
  add(f, op_is_wide(f->c, n));
  add(f, f->g->blocks.n ? f->g->blocks.at[n->block].accumulate : 1);
  if (op_draws(n)) add_draw(f, n);
  add_value(f, n->over);
  add(f, n->n_in);
  for (uint32_t i = 0; i < n->n_in; i++) add_value(f, n->in[i]);
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

static void add_group(KernelFacts *f, const Group *p)
{
  add(f, p->n);
  add(f, (int64_t)p->n_parts << 32 | p->last);
  add(f, p->in_turn << 1 | p->meets);
  for (uint32_t i = 0; i < p->n; i++) add_own_node(f, p->nodes[i]);
  add_value(f, p->anchor);
  for (uint32_t i = 0; i < p->n_parts; i++) add_group(f, &p->parts[i]);
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

static void begin(KernelFacts *f, uint32_t part)
{
  f->words.n = 0;
  f->first += f->n;
  f->n = 0;
  f->part = part;
}

XXH128_hash_t facts_of_part(KernelFacts *f, const KernelPart *part)
{
  begin(f, ir_node(f->g, part->group->nodes[0])->part);
  f->args = part->args;
  add_group(f, part->group);
  for (uint32_t i = 0; i < f->args.n; i++) add_argument(f, &f->args.at[i]);
  return XXH3_128bits(f->words.at, f->words.n * sizeof *f->words.at);
}

XXH128_hash_t facts_of(KernelFacts *f, uint32_t group)
{
  begin(f, 0);
  const Command *command = command_of(f->g, group);
  if (command->columns) {
    add_convolution(f, &command->conv);
  } else {
    f->args = command->whole.args;
    add_group(f, &f->g->groups.at[group]);
    add_arguments(f, group);
  }
  return XXH3_128bits(f->words.at, f->words.n * sizeof *f->words.at);
}
