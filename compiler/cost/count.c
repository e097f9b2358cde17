/* Bytes and arithmetic of a command.
 *
 * Note [flops]
 * A product or convolution counts two for each multiply-add. In ampc's own kernels each operator +
 * - * / and each function call in the op's code (ops.def) counts one: for each element, or once a
 * row if the statement is about a row. A reduction adds one for each element. Comparisons, casts,
 * moves and integer arithmetic do not count. Ops whose text is a template file are not counted.
 * Bytes are those of the tensors: each operand counts once, with the size that is used, even if
 * caches or repeated reads change the traffic. A command in a loop (`scan`) counts once for each
 * iteration, and each iteration writes one slice of a stack. */
#include "count.h"
#include <string.h>
#include "runtime/plan/conv_sizes.h"

/* ---- arithmetic ---- */

/* Counts the operators and calls that stand in a formula of n's code. */
static int64_t count_formula(const Node *n, const Formula *f)
{
  f = code_standing(n, f);
  int64_t count = f->kind >= FORMULA_call && f->kind <= FORMULA_sub && f->kind != FORMULA_not;
  for (uint32_t i = 0; i < f->n; i++) count += count_formula(n, f->in[i]);
  return count;
}

/* Counts a row program: statements about each element, and statements about the row. */
static int64_t count_row(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  const OpCode *code = &op_of(n)->code;
  RowShape shape = row_shape(g, v);
  int64_t elements = shape.outer * shape.length * shape.inner, flops = 0;
  int64_t rows = (shape.parts ? shape.parts : shape.outer) * shape.inner;
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    bool compares = s->kind == STATEMENT_first;
    if (compares || !code_stands(n, s->condition)) continue;
    int64_t each = count_formula(n, s->value);
    if (statement_reduces(s->kind))
      flops += elements * (each + 1);
    else
      flops += (s->kind == STATEMENT_each ? elements : rows) * each;
  }
  return flops;
}

typedef struct Counter {
  Compile *c;
  CommandCount *sum;
  NodeCount *nodes; /* counts per node, or NULL */
} Counter;

int64_t node_flops(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  OpTemplate tmpl = op_of(n)->tmpl;
  if (tmpl == TMPL_file || !ir_meets_floats(g, n)) return 0; /* integer arithmetic does not count */
  int64_t flops = 0;
  const OpCode *code = &op_of(n)->code;
  for (uint32_t i = 0; tmpl == TMPL_map && i < code->n_statements; i++)
    flops += ir_elements(n) * count_formula(n, code->statements[i].value);
  if (ir_adds_to(n) >= 0) flops += ir_elements(ir_node(g, n->in[0]));
  if (tmpl == TMPL_row) flops += count_row(g, v);
  return flops;
}

/* Adds the FLOPs of a kernel's nodes; -1 for an op with a template file, whose text is not read. */
static void count_flops(const Counter *k, const Group *group)
{
  const Graph *g = k->c->graph;
  for (uint32_t i = 0; i < group->n; i++) {
    int64_t flops = node_flops(g, group->nodes[i]);
    bool counted = op_of(ir_node(g, group->nodes[i]))->tmpl != TMPL_file;
    if (k->nodes) k->nodes[group->nodes[i].id].flops += flops;
    if (!counted)
      k->sum->flops = -1;
    else if (k->sum->flops >= 0)
      k->sum->flops += flops;
  }
}

/* Returns two FLOPs for each output element and weight of its window. Backward convolutions have as
 * many: the same products in another order. */
static int64_t conv_flops(const ampc_conv *d)
{
  return 2 * d->n * conv_out_pixels(d) * conv_weights(d);
}

/* ---- bytes ---- */

/* Returns the bytes that an argument covers: a parameter's slot, or the range of an update. */
static int64_t range_bytes(Compile *c, const Group *group, const KernelArg *a)
{
  const Graph *g = c->graph;
  int64_t elements = a->value.id ? ir_elements(ir_node(g, ir_node(g, a->value)->in[0]))
                                 : node_range(g, ir_node(g, group->anchor));
  return elements / ampc_space_each(a->place.space) * ir_dtype_size(c, a->type);
}

/* Returns the bytes of an input. A kernel that only moves some elements (a slice) reads no more
 * than it writes. */
static int64_t operand_bytes(Compile *c, const Group *group, const KernelArg *a)
{
  const Graph *g = c->graph;
  const Node *n = ir_node(g, a->value);
  int64_t elements = ir_elements(n);
  const Node *reader = ir_node(g, group->nodes[0]);
  if (group->n == 1 && op_of(reader)->tmpl == TMPL_move && ir_elements(reader) < elements)
    elements = ir_elements(reader);
  return elements * ir_dtype_size(c, a->type);
}

/* Returns the bytes of a buffer, such as running statistics. */
static int64_t buffer_bytes(Compile *c, const Group *group, const KernelArg *a)
{
  (void)group;
  const Parameter *p = &c->graph->params.at[a->index];
  return ir_dtype_size(c, p->dtype) * dims_product(p->dim, p->rank);
}

/* True for a gradient norm: it only reads the space that an update also writes. */
static bool reads_gradients(const Node *anchor)
{
  const OpInfo *op = op_of(anchor);
  for (uint32_t i = 0; i < op->n_file_args; i++)
    if (op->file_args[i] == FILE_grad) return true;
  return false;
}

/* Returns the bytes of v that one iteration writes. */
static int64_t made_bytes(const Compile *c, Value v)
{
  const Node *n = ir_node(c->graph, v);
  int64_t bytes = ir_bytes(c, n);
  return n->op == OP_stack ? bytes / n->dim[0] : bytes;
}

static int64_t result_bytes(Compile *c, const Group *group, const KernelArg *a)
{
  (void)group;
  return made_bytes(c, a->value);
}

/* Returns the bytes of scratch, which is written and read back. */
static int64_t scratch_bytes(Compile *c, const Group *group, const KernelArg *a)
{
  (void)a;
  return own_scratch(c, group);
}

/* Returns the node to which an operand's bytes are added: the first node that reads an input, the
 * node that computes a result, else the main node of the kernel. */
static Value owner_of(const Graph *g, const Group *group, const KernelArg *a)
{
  if (a->role == ARG_out) return a->value;
  for (uint32_t i = 0; i < group->n && a->role == ARG_in; i++) {
    const Node *n = ir_node(g, group->nodes[i]);
    for (uint32_t k = 0; k < n->n_in; k++)
      if (n->in[k].id && value_root(g, n->in[k]).id == a->value.id) return group->nodes[i];
  }
  return group->anchor.id ? group->anchor : group->nodes[0];
}

static void take(const Counter *k, Value who, int64_t read, int64_t written)
{
  k->sum->read += read;
  k->sum->written += written;
  if (!k->nodes) return;
  k->nodes[who.id].read += read;
  k->nodes[who.id].written += written;
}

/* For each kind of argument: its bytes, and whether it is read and written. Kinds that are not
 * listed are a few bytes of STATE or a number. */
static const struct {
  int64_t (*bytes)(Compile *c, const Group *group, const KernelArg *a);
  bool read, written;
} roles[] = {[ARG_in] = {operand_bytes, true, false},   [ARG_out] = {result_bytes, false, true},
             [ARG_grad] = {range_bytes, true, true},    [ARG_master] = {range_bytes, true, true},
             [ARG_moment1] = {range_bytes, true, true}, [ARG_moment2] = {range_bytes, true, true},
             [ARG_moment3] = {range_bytes, true, true}, [ARG_ema] = {range_bytes, true, true},
             [ARG_copy] = {range_bytes, false, true},   [ARG_buffer] = {buffer_bytes, true, true},
             [ARG_kept] = {buffer_bytes, true, true},   [ARG_scratch] = {scratch_bytes, true, true},
             [ARG_scale1] = {range_bytes, true, true},  [ARG_scale2] = {range_bytes, true, true},
             [ARG_scale3] = {range_bytes, true, true},  [ARG_residue] = {range_bytes, true, true},
             [ARG_stream] = {NULL, false, false}};

static void count_argument(const Counter *k, const Group *group, const KernelArg *a)
{
  const Graph *g = k->c->graph;
  if (!roles[a->role].bytes || (a->role == ARG_in && a->place.space == AMPC_STATE)) return;
  int64_t bytes = roles[a->role].bytes(k->c, group, a);
  int64_t over = a->over.id ? made_bytes(k->c, a->over) : 0;
  bool norm = group->anchor.id && reads_gradients(ir_node(g, group->anchor));
  bool read = roles[a->role].read, stays = read && (norm || a->only_read);
  take(k, owner_of(g, group, a), read ? bytes : over, roles[a->role].written && !stays ? bytes : 0);
}

static void count_part(const Counter *k, const KernelPart *part)
{
  for (uint32_t i = 0; i < part->args.n; i++) count_argument(k, part->group, &part->args.at[i]);
}

int64_t part_bytes(Compile *c, const KernelPart *part)
{
  CommandCount sum = {0};
  count_part(&(Counter){c, &sum, NULL}, part);
  return sum.read + sum.written;
}

static int64_t library_flops(const Command *k)
{
  const ampc_gemm *d = &k->gemm;
  return k->kind == COMMAND_conv ? conv_flops(&k->conv) : 2 * d->m * d->n * d->k * d->batch;
}

/* Counts a product or convolution. A command that adds to its result also reads it. */
static void count_product(const Counter *k, uint32_t group)
{
  const Graph *g = k->c->graph;
  const Group *of = &g->groups.at[group];
  const Command *call = command_of(g, group);
  int64_t written = made_bytes(k->c, call->operands[call->result]);
  int64_t read = call->accumulates ? written : 0;
  for (uint32_t i = 0; i < 4; i++)
    if (call->operands[i].id && i != call->result)
      read += ir_bytes(k->c, ir_node(g, call->operands[i]));
  take(k, of->anchor, read, written);
  k->sum->flops = library_flops(call);
  if (k->nodes) k->nodes[of->anchor.id].flops += k->sum->flops;
}

/* Returns how often a command is launched: the product of the counts of the loops around it. */
static int64_t times_of(const Graph *g, const Group *group)
{
  int64_t times = 1;
  for (uint16_t i = ir_node(g, group->nodes[0])->loop; i; i = g->loops.at[i].parent)
    times *= g->loops.at[i].count;
  return times;
}

CommandCount command_count(Compile *c, uint32_t group, NodeCount *nodes)
{
  const Graph *g = c->graph;
  const Group *of = &g->groups.at[group];
  const Command *command = command_of(g, group);
  CommandCount sum = {.kind = command->kind, .times = times_of(g, of)};
  Counter k = {c, &sum, nodes};
  if (command_by_library(command)) {
    count_product(&k, group);
  } else {
    for (uint32_t i = 0; i < command->n_parts; i++) count_part(&k, &command->parts[i]);
    count_flops(&k, of);
  }
  sum.read *= sum.times;
  sum.written *= sum.times;
  if (sum.flops > 0) sum.flops *= sum.times;
  for (uint32_t i = 0; nodes && i < of->n; i++) {
    NodeCount *n = &nodes[of->nodes[i].id];
    *n = (NodeCount){n->read * sum.times, n->written * sum.times, n->flops * sum.times};
  }
  return sum;
}
