/* Collects the data of `--explain` for each node from the graph of a compiled job, with sums.
 *
 * Note [bytes of a cast]
 * A cast within a kernel is free: the kernel reads its operand anyway. A cast moves bytes if its
 * command only casts, or if its result is stored in addition to its operand. A 16-bit copy of a
 * weight costs no cast: the optimizer stores it during the update. */
#include "explain.h"
#include <stdlib.h>
#include <string.h>

typedef struct Gather {
  Explanation *e;
  Compile *c;
  const Graph *g;
  NodeCount *counts;        /* indexed by node */
  const ValueBound *bounds; /* indexed by node */
  double *us;               /* indexed by node */
  Prediction *made;         /* indexed by group */
  /* indexed by node: linked lists of the casts that read the node */
  uint32_t *first_user, *next_user;
} Gather;

/* ---- times of nodes ---- */

/* Returns the time that a node would take alone. Nodes divide the kernel's time in this ratio. */
static double weight_of(const Gather *t, Value v)
{
  const Gpu *gpu = t->e->gpu;
  const NodeCount *n = &t->counts[v.id];
  double peak = 2.0 * gpu->lanes_f32 * gpu->multiprocessors * gpu->mhz; /* FLOPs a microsecond */
  return (double)(n->read + n->written) / (gpu->dram * 1e3) + (double)n->flops / peak;
}

static void share_time(Gather *t, const Group *group, double us)
{
  double all = 0;
  for (uint32_t i = 0; i < group->n; i++) all += weight_of(t, group->nodes[i]);
  for (uint32_t i = 0; i < group->n; i++) {
    Value v = group->nodes[i];
    t->us[v.id] = all > 0 ? us * weight_of(t, v) / all : us / group->n;
  }
}

static uint16_t block_of(const Graph *g, const Group *group)
{
  return ir_node(g, group->nodes[group->n - 1])->block;
}

static void predict_commands(Gather *t, ExplainBlock *b)
{
  const Graph *g = t->g;
  for (uint32_t i = 1; i < g->groups.n; i++) {
    const Group *group = &g->groups.at[i];
    if (block_of(g, group) != b->block || !command_of(g, i)->kind) continue;
    Prediction *p = &t->made[i];
    *p = predict_command(t->c, t->e->gpu, i, t->counts);
    b->commands++;
    b->parts[p->part] += p->cost.us;
    b->parts[PART_launches] += p->launch_us;
    b->us += p->cost.us + p->launch_us;
    share_time(t, group, p->cost.us + p->launch_us);
  }
}

/* ---- casts ---- */

static bool has_command(const Graph *g, const Node *n)
{
  return n->group && !n->folded && command_of(g, n->group)->kind;
}

/* True if the value is also in memory, not only in a register of a kernel. */
static bool lies_in_memory(const Gather *t, Value v)
{
  v = value_root(t->g, v);
  return op_of(ir_node(t->g, v))->tmpl == TMPL_leaf || t->counts[v.id].written > 0;
}

/* Note [bytes of a cast] */
static int64_t cast_bytes(const Gather *t, Value v)
{
  const Node *n = ir_node(t->g, v);
  const NodeCount *count = &t->counts[v.id];
  if (!op_has(n, T_casts) || is_working_copy(t->g, v) || !has_command(t->g, n)) return 0;
  if (t->made[n->group].part == PART_casts) return count->read + count->written;
  return count->written && lies_in_memory(t, n->in[0]) ? count->written : 0;
}

static Value cast_source(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  while (n->n_in && n->in[0].id &&
         (op_has(n, T_casts) || op_of(n)->tmpl == TMPL_alias || op_has(n, T_repeats) ||
          op_has(n, T_strided))) {
    v = n->in[0];
    n = ir_node(g, v);
  }
  return v;
}

/* True for a cast of a parameter that runs in each step, because the optimizer stores no copy. */
static bool is_weight_cast(const Gather *t, Value v)
{
  const Node *n = ir_node(t->g, v);
  if (!op_has(n, T_casts) || is_working_copy(t->g, v)) return false;
  const Node *from = ir_node(t->g, cast_source(t->g, v));
  const Parameter *p = ir_parameter(t->g, from);
  if (!p || p->buffer) return false;
  bool narrows = ir_dtype_size(t->c, n->dtype) < ir_dtype_size(t->c, from->dtype);
  return narrows && dtype_is_float(n->dtype) && (n->folded || n->group);
}

static ExplainCast cast_at(const Gather *t, Value v)
{
  const Node *n = ir_node(t->g, v);
  return (ExplainCast){v, ir_in(t->c, n, 0)->dtype, n->dtype, cast_bytes(t, v)};
}

static void link_casts(Gather *t)
{
  const Graph *g = t->g;
  for (uint32_t id = g->nodes.n - 1; id > 0; id--) {
    const Node *n = &g->nodes.at[id];
    if (!op_has(n, T_casts) || !n->in[0].id) continue;
    t->next_user[id] = t->first_user[n->in[0].id];
    t->first_user[n->in[0].id] = id;
  }
}

static void find_casts(const Gather *t, ExplainNode *out)
{
  const Node *n = ir_node(t->g, out->value);
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id && op_has(ir_node(t->g, n->in[i]), T_casts))
      vec_push(t->c->arena, &out->before, cast_at(t, n->in[i]));
  for (uint32_t id = t->first_user[out->value.id]; id; id = t->next_user[id])
    vec_push(t->c->arena, &out->after, cast_at(t, (Value){id}));
}

/* ---- nodes ---- */

static const char *path_of(const Graph *g, const Node *n)
{
  if (n->layer) return layer_path(g, n->layer);
  return optimizer_name_of(g, n);
}

/* Returns the type that is computed: of a product's operands, the result or the first float
 * input. */
static DType flops_type(const Graph *g, const Node *n, const Prediction *made)
{
  if (made && made->product) return made->load.type;
  if (dtype_is_float(n->dtype)) return n->dtype;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id && dtype_is_float(ir_node(g, n->in[i])->dtype))
      return ir_node(g, n->in[i])->dtype;
  return n->dtype;
}

static Facts facts_of(const Gather *t, uint32_t id, const ExplainNode *of)
{
  const Node *n = &t->g->nodes.at[id];
  OpTypes types = op_types(t->c, n);
  Facts f = facts_none();
  f.id = id;
  f.op = op_of(n)->name;
  f.name = n->name;
  f.layer = path_of(t->g, n);
  facts_place(&f, t->c, of->place);
  f.dtype = ir_dtype_name(n->dtype);
  f.compute_dtype = types.compute;
  f.accumulate_dtype = types.accumulate;
  f.flops_dtype = ir_dtype_name(of->flops_type);
  f.shape = ir_dims_text(t->c, n);
  f.reason = ir_why_text(t->c, n);
  if (op_has(n, T_casts) && is_working_copy(t->g, of->value))
    f.reason = arena_printf(t->c->arena, "%s; free: the optimizer's kernel stores it", f.reason);
  if (has_command(t->g, n)) f.command = command_of(t->g, n->group)->name;
  f.times = 1;
  f.read = (double)of->count.read;
  f.written = (double)of->count.written;
  f.bytes = f.read + f.written;
  f.flops = (double)of->count.flops;
  f.predicted_us = t->us[id];
  return f;
}

static ExplainNode make_node(const Gather *t, uint32_t id)
{
  const Graph *g = t->g;
  const Node *n = &g->nodes.at[id];
  Value v = {id};
  const Prediction *made = has_command(g, n) ? &t->made[n->group] : NULL;
  ExplainNode out = {.value = v,
                     .place = diag_user_place(t->c, n->span),
                     .cast_bytes = cast_bytes(t, v),
                     .weight_cast = is_weight_cast(t, v),
                     .count = t->counts[id],
                     .bound = t->bounds[id],
                     .flops_type = flops_type(g, n, made)};
  if (made && made->product && g->groups.at[n->group].anchor.id == id) out.made = made;
  out.facts = facts_of(t, id, &out);
  find_casts(t, &out);
  return out;
}

static void add_to_sums(const Gather *t, ExplainBlock *b, const ExplainNode *n)
{
  DType result = ir_node(t->g, n->value)->dtype;
  b->weight_casts += n->weight_cast;
  b->cast_bytes += n->cast_bytes;
  b->read += n->count.read;
  b->written += n->count.written;
  b->flops += n->count.flops;
  b->flops_by_type[n->flops_type] += n->count.flops;
  b->us_by_type[result] += n->facts.predicted_us;
}

/* ---- what is expensive ---- */

static ExplainSource *source_at(Gather *t, ExplainBlock *b, Value v)
{
  for (uint32_t i = 0; i < b->sources.n; i++)
    if (b->sources.at[i].value.id == v.id) return &b->sources.at[i];
  vec_push(t->c->arena, &b->sources, (ExplainSource){.value = v});
  return &b->sources.at[b->sources.n - 1];
}

/* Returns the time of a cast: that of its own kernel, or else of its bytes. */
static double cast_us(const Gather *t, const ExplainNode *n)
{
  if (!n->cast_bytes) return 0;
  bool alone = t->made[ir_node(t->g, n->value)->group].part == PART_casts;
  return alone ? n->facts.predicted_us : (double)n->cast_bytes / (t->e->gpu->dram * 1e3);
}

static void find_sources(Gather *t, ExplainBlock *b)
{
  for (uint32_t i = 0; i < b->nodes.n; i++) {
    const ExplainNode *n = &b->nodes.at[i];
    double us = cast_us(t, n);
    if (us <= 0) continue;
    ExplainSource *s = source_at(t, b, cast_source(t->g, n->value));
    s->casts++;
    s->bytes += n->cast_bytes;
    s->us += us;
    b->cast_us += us;
  }
}

/* Returns the first operand size whose rows are not aligned; 0 if all rows are aligned. */
static int64_t odd_size(const Compile *c, const ampc_gemm *d, DType *type)
{
  const struct {
    DType type;
    int64_t size;
  } all[] = {{d->a_type, d->lda}, {d->b_type, d->ldb}, {d->c_type, d->ldc}};
  for (int i = 0; i < 3; i++) {
    *type = all[i].type;
    if (!rows_aligned(c, all[i].type, all[i].size)) return all[i].size;
  }
  return 0;
}

/* Returns the first number of channels that is not aligned; 0: none. Four channels or fewer are
 * accepted, because libraries have kernels for images with three colours. */
static int64_t odd_channels(const Compile *c, const ampc_conv *d, DType *type)
{
  enum { FEW = 4 };
  const int64_t all[] = {d->c / d->groups, d->k / d->groups};
  *type = d->w_type;
  for (int i = 0; i < 2; i++)
    if (all[i] > FEW && !rows_aligned(c, d->w_type, all[i])) return all[i];
  return 0;
}

static void add_size(Gather *t, ExplainBlock *b, const ExplainNode *n)
{
  const Node *node = ir_node(t->g, n->value);
  const Command *k = command_of(t->g, node->group);
  DType type;
  int64_t size = k->kind == COMMAND_conv ? odd_channels(t->c, &k->conv, &type)
                                         : odd_size(t->c, &k->gemm, &type);
  if (!size) return;
  int64_t step = TENSOR_ALIGNMENT / ir_dtype_size(t->c, type);
  double saves = n->made->cost.us - n->made->aligned_us;
  for (uint32_t i = 0; i < b->sizes.n; i++)
    if (b->sizes.at[i].size == size) {
      b->sizes.at[i].saves += saves;
      return;
    }
  vec_push(t->c->arena, &b->sizes,
           (ExplainSize){size, (size + step - 1) / step * step, type, n->value, saves});
}

static void find_sizes(Gather *t, ExplainBlock *b)
{
  for (uint32_t i = 0; i < b->nodes.n; i++) {
    const ExplainNode *n = &b->nodes.at[i];
    bool product = n->made && n->made->part == PART_products;
    if (product && n->made->cost.us > n->made->aligned_us) add_size(t, b, n);
  }
}

static int by_saves(const void *a, const void *b)
{
  double x = ((const ExplainSize *)a)->saves, y = ((const ExplainSize *)b)->saves;
  return (x < y) - (x > y);
}

static int by_us(const void *a, const void *b)
{
  double x = ((const ExplainSource *)a)->us, y = ((const ExplainSource *)b)->us;
  return (x < y) - (x > y);
}

/* Note [what matters] A size or a cast is reported if it costs at least a hundredth of the step and
 * at least ten microseconds. */
static void keep_what_matters(ExplainBlock *b)
{
  enum { LEAST_US = 10, PARTS = 100 };
  uint32_t n = 0, k = 0;
  while (n < b->sizes.n && b->sizes.at[n].saves >= LEAST_US &&
         b->sizes.at[n].saves >= b->us / PARTS)
    n++;
  while (k < b->sources.n && b->sources.at[k].us >= LEAST_US &&
         b->sources.at[k].us >= b->us / PARTS)
    k++;
  b->sizes.n = n;
  b->sources.n = k;
}

static void find_what_matters(Gather *t, ExplainBlock *b)
{
  find_sources(t, b);
  find_sizes(t, b);
  if (b->sizes.n) qsort(b->sizes.at, b->sizes.n, sizeof *b->sizes.at, by_saves);
  if (b->sources.n) qsort(b->sources.at, b->sources.n, sizeof *b->sources.at, by_us);
  keep_what_matters(b);
}

/* ---- blocks ---- */

static void gather_block(Gather *t, uint16_t block)
{
  const Graph *g = t->g;
  ExplainBlock b = {.block = block};
  predict_commands(t, &b);
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (n->block != block || op_has(n, T_literal)) continue;
    ExplainNode node = make_node(t, id);
    vec_push(t->c->arena, &b.nodes, node);
    add_to_sums(t, &b, &node);
  }
  find_what_matters(t, &b);
  vec_push(t->c->arena, &t->e->blocks, b);
}

static uint32_t step_block(const Graph *g)
{
  for (uint32_t i = 0; i < g->blocks.n; i++)
    if (g->blocks.at[i].kind == AMPC_TRAIN) return i;
  return 0;
}

const char *explain_against(const Compile *c, const Gpu *gpu)
{
  const char *own = c->graph->precision;
  if (own && strcmp(own, "f32") != 0) return "f32";
  return gpu->tensor_tf32 > 0 || gpu->cpu ? "bf16" : "f16";
}

static void compare(Explanation *e, Compile *other, uint32_t step)
{
  if (!other || other->graph->blocks.n != e->c->graph->blocks.n) return;
  e->against = explain_against(e->c, e->gpu);
  predict_block(other, e->gpu, (uint16_t)step, e->parts);
  for (int i = 0; i < PART_COUNT; i++) e->against_us += e->parts[i];
}

void explain_gather(Compile *c, const Gpu *gpu, Compile *other, Explanation *out)
{
  const Graph *g = c->graph;
  *out = (Explanation){.c = c, .gpu = gpu};
  Gather t = {.e = out,
              .c = c,
              .g = g,
              .counts = arena_array(c->arena, NodeCount, g->nodes.n),
              .bounds = bounds_find(c),
              .us = arena_array(c->arena, double, g->nodes.n),
              .made = arena_array(c->arena, Prediction, g->groups.n),
              .first_user = arena_array(c->arena, uint32_t, g->nodes.n),
              .next_user = arena_array(c->arena, uint32_t, g->nodes.n)};
  link_casts(&t);
  if (!g->blocks.n) return;
  uint32_t step = step_block(g);
  gather_block(&t, (uint16_t)step);
  for (uint32_t i = 0; i < g->blocks.n; i++)
    if (i != step && g->blocks.at[i].variant_of < 0) gather_block(&t, (uint16_t)i);
  compare(out, other, step);
  explain_answer(out);
}
