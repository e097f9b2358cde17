/* Checks the rules that hold for every graph after a pass. A violation is a bug of the compiler, so
 * the graph is dumped and the program aborts after the pass that caused it. */
#include "ops.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a check looks at: the pass that has ended, and the node. */
typedef struct Check {
  Compile *c;
  const char *pass;
  uint32_t id;
  const Node *n;
  const bool *read; /* indexed by node id: true if another node reads the node */
} Check;

void ir_bug(Compile *c, const char *pass, Value v, const char *rule)
{
  const Node *n = ir_node(c->graph, v);
  Span span = diag_user_span(c, n->span);
  Place at = span.end ? diag_place(c, span) : (Place){0};
  Text out = text_new(c->arena);
  ir_print(c, &out, true);
  fflush(stdout);
  fprintf(stderr, "%sampc: bug in pass %s: ", out.at, pass);
  if (at.source) fprintf(stderr, "%s:%u: ", arena_shown(c->arena, at.source->path, ""), at.line);
  fprintf(stderr, "%%%u (%s): %s\n", v.id, op_of(n)->name, rule);
  abort();
}

static _Noreturn void broken(const Check *k, const char *rule)
{
  ir_bug(k->c, k->pass, (Value){k->id}, rule);
}

static void check_number_of_inputs(const Check *k)
{
  const OpSignature *sig = &op_of(k->n)->signature;
  bool variadic = sig->n_inputs && sig->input[sig->n_inputs - 1].variadic;
  if (variadic ? k->n->n_in + 1u < sig->n_inputs : k->n->n_in != sig->n_inputs)
    broken(k, "wrong number of inputs");
}

/* Checks that inputs stand before their users, as every pass requires, and in the same block. */
static void check_inputs(const Check *k)
{
  const Graph *g = k->c->graph;
  check_number_of_inputs(k);
  for (uint32_t i = 0; i < k->n->n_in; i++) {
    Value in = k->n->in[i];
    if (!in.id && !op_input_optional(op_of(k->n), i)) broken(k, "required input is absent");
    if (in.id >= k->id) broken(k, "input does not stand before its user");
    if (in.id && ir_node(g, in)->block != k->n->block) broken(k, "input is of another block");
  }
  if (k->n->origin.id >= k->id) broken(k, "origin does not stand before the node");
  if (k->n->after.id >= k->id) broken(k, "`after` does not stand before the node");
  if (k->n->region >= g->regions.n) broken(k, "no such region");
  if (g->blocks.n && k->n->block >= g->blocks.n) broken(k, "no such block");
}

/* Returns the size of the table that an attribute of this kind indexes; -1 if it is no index. */
static int64_t table_size(const Graph *g, const Node *n, AttrKind kind)
{
  switch (kind) {
  case ATTR_source:
    return g->sources.n;
  case ATTR_param:
    return g->params.n;
  case ATTR_setting:
    return g->settings.n;
  case ATTR_metric:
    return g->metrics.n;
  case ATTR_optimizer:
    return g->optimizers.n;
  case ATTR_group:
    return g->optimizers.at[attr_int(n, "optimizer")].groups.n;
  case ATTR_loop:
    return g->loops.n;
  case ATTR_output:
    return g->outputs.n ? (int64_t)g->outputs.n : -1; /* tests have outputs without a name */
  default:
    return -1;
  }
}

/* Checks that a node reads only values of its own loop or of an enclosing loop: Note [loops]. */
static void check_loops(const Check *k)
{
  const Graph *g = k->c->graph;
  const Node *n = k->n;
  if (n->loop >= g->loops.n) broken(k, "no such loop");
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id && !ir_loop_within(g, n->loop, ir_loop_of(g, n->in[i])) &&
        !(op_of(n)->tmpl == TMPL_loop && op_has(n, T_effect)))
      broken(k, "it reads an iteration of another loop");
  if (!n->loop) return;
  if (op_has(n, T_effect) && op_of(n)->tmpl != TMPL_loop) broken(k, "an effect in a loop");
  if (op_draws(n)) broken(k, "random numbers in a loop");
}

/* Checks that indices into tables are in range. Later passes do not check them. */
static void check_tables(const Check *k)
{
  const OpSignature *sig = &op_of(k->n)->signature;
  for (uint32_t i = 0; i < sig->n_attrs; i++) {
    int64_t size = table_size(k->c->graph, k->n, sig->attr[i].kind), at = k->n->attr[i].i;
    bool unknown = at == -1 && !sig->attr[i].required; /* statistics before pass gradient */
    if (size >= 0 && !unknown && (at < 0 || at >= size)) broken(k, "index outside its table");
  }
}

/* True for weight gradients that may keep the f32 sum of 16-bit operands: see passes/gradient.c. */
static bool keeps_f32_sum(const Node *n, DType inferred)
{
  return op_has(n, T_keeps_sum) && n->dtype == AMPC_F32 && dtype_is_float(inferred);
}

/* Runs the shape rule again: a pass that changes inputs or attributes must also update dims. */
static void check_shape(const Check *k)
{
  Node again = *k->n;
  if (!ir_infer(k->c, &again)) broken(k, "its shape rule refuses it");
  if (!ir_same_dims(&again, k->n)) broken(k, "its shape is not what the shape rule gives");
  if (!(k->c->graph->facts & IR_TYPED)) return;
  if (again.dtype != k->n->dtype && !keeps_f32_sum(k->n, again.dtype))
    broken(k, "its type is not what its inputs give");
}

/* Checks that no op mixes inputs of different types; this holds after pass precision. Only weak
 * numbers may have another type. */
static void check_types(const Check *k)
{
  if (k->n->why == WHY_none) broken(k, "no reason for its type");
  uint64_t axes;
  if (op_axes(k->n, &axes) && !ir_axes_touch(axes)) broken(k, "reduces axes that do not touch");
  if (op_says_type(op_of(k->n)) || !k->n->n_in) return;
  uint32_t first, end = op_mixed_inputs(k->n, &first);
  DType common = op_common_type(k->c, k->n);
  for (uint32_t i = first; i < end && i < k->n->n_in; i++) {
    const Node *in = ir_in(k->c, k->n, i);
    if (k->n->in[i].id && !in->weak && in->dtype != common)
      broken(k, "inputs of different types were not cast");
  }
}

/* Checks that each gradient is f32 and has the shape of its parameter; this holds after pass
 * gradient. The update reads both in the same order. */
static void check_gradient(const Check *k)
{
  if (k->n->op == OP_minimize) broken(k, "minimize is left over");
  if (ir_adds_to(k->n) < 0) return;
  const Parameter *p = &k->c->graph->params.at[attr_int(k->n, "param")];
  const Node *value = ir_in(k->c, k->n, 0);
  int64_t dim[MAX_RANK];
  Layout layout = ir_param_dims(p, dim);
  if (value->dtype != AMPC_F32) broken(k, "a gradient that is not f32");
  if (value->rank != p->rank || memcmp(value->dim, dim, p->rank * sizeof *dim) != 0)
    broken(k, "a gradient with another shape than its parameter");
  if (value->layout != layout) broken(k, "a gradient with another layout than its parameter");
}

/* Checks an input. `image`: the op expects an image or the weight of a convolution there. */
static void check_input_layout(const Check *k, const Node *in, bool image)
{
  bool last = in->layout == LAYOUT_channels_last, laid = k->n->layout == LAYOUT_channels_last;
  if (image && in->rank > 2 && !last) broken(k, "images that are not channels last");
  if (op_image_inputs(op_of(k->n)) || op_of(k->n)->tmpl == TMPL_row) return;
  if (in->rank == k->n->rank && last != laid) broken(k, "inputs of different layouts");
}

/* Checks layouts: image ops read channels-last images, convolutions also channels-last weights. All
 * other ops follow the layout of their inputs, or read the language's layout. */
static void check_layout(const Check *k)
{
  const Node *n = k->n;
  uint32_t images = op_of(n)->tmpl == TMPL_conv ? ~0u : op_image_inputs(op_of(n));
  if (n->layout == LAYOUT_channels_last && n->rank < 3) broken(k, "too few axes for channels last");
  if (op_has(n, T_permutes) || op_has(n, T_repeats) || n->op == OP_reshape) return;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id) check_input_layout(k, ir_in(k->c, n, i), i < 32 && (images >> i & 1));
}

/* Checks that each node of a command is an effect, is kept or is read by another node; otherwise
 * its kernel would store nothing. A `next` is exempt, because the next iteration may read it. */
static void check_read(const Check *k)
{
  const Node *n = k->n;
  bool ends = op_has(n, T_effect) || op_has(n, T_kept) || n->op == OP_next;
  if (n->group && !ends && !k->read[k->id]) broken(k, "nobody reads it");
}

static bool *find_read(Compile *c)
{
  const Graph *g = c->graph;
  bool *read = arena_array(c->arena, bool, g->nodes.n);
  for (uint32_t id = 1; id < g->nodes.n; id++)
    for (uint32_t i = 0; i < g->nodes.at[id].n_in; i++) read[g->nodes.at[id].in[i].id] = true;
  return read;
}

/* Checks the rules that hold according to Graph.facts, such as IR_TYPED after pass precision. */
void ir_check(Compile *c, const char *pass)
{
  const Graph *g = c->graph;
  const bool *read = find_read(c);
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    Check k = {c, pass, id, &g->nodes.at[id], read};
    check_inputs(&k);
    check_tables(&k);
    check_shape(&k);
    check_loops(&k);
    if (g->facts & IR_TYPED) check_types(&k);
    if (g->facts & IR_DIFFED) check_gradient(&k);
    if (g->facts & IR_LAID) check_layout(&k);
    if (g->facts & IR_FUSED) check_read(&k);
  }
}
