/* Bytes and arithmetic of a command.
 *
 * Note [flops]
 * A product or convolution does two for each multiplication. In a kernel of ours each operator
 * + - * / and each call of a function in the op's code (ops.def) is one, for each element, or once
 * a row where it stands in a statement about a row; a reduction adds one an element. Comparisons,
 * casts, moves and arithmetic of integers are none. Ops whose text is a template file of their own
 * are not counted. Bytes are those of the tensors: each operand once, as large as what is used of
 * it, whatever caches and second passes make of it. A command in a loop (`scan`) counts as often as
 * the loop turns, of which each time makes one slice of what is stacked. */
#include "inspect.h"
#include "runtime/plan/conv_sizes.h"
#include <string.h>

/* ---- arithmetic ---- */

/* Operators in a piece of text of an op's code. */
static int64_t count_operators(const CodePiece *p)
{
  int64_t count = 0;
  for (uint32_t i = 0; i < p->size; i++) count += strchr("+-*/", p->text[i]) != NULL;
  return count;
}

/* Operators and calls in a statement of n's code. */
static int64_t count_statement(const Node *n, const CodeStatement *s)
{
  int64_t count = 0;
  for (uint32_t i = 0; i < s->n_pieces; i++) {
    const CodePiece *p = &s->pieces[i];
    if (!code_stands(n, p->condition)) continue;
    if (p->kind == PIECE_call) count++;
    if (p->kind == PIECE_text) count += count_operators(p);
  }
  return count;
}

/* A row program: statements about each element, and about the row. */
static int64_t count_row(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  const OpCode *code = &op_of(n)->code;
  RowShape shape = row_shape(g, v);
  int64_t elements = shape.outer * shape.length * shape.inner, flops = 0;
  int64_t rows = (shape.parts ? shape.parts : shape.outer) * shape.inner;
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    if (!code_stands(n, s->condition) || s->kind == STATEMENT_first) continue; /* a comparison */
    int64_t each = count_statement(n, s);
    if (statement_reduces(s->kind))
      flops += elements * (each + 1);
    else
      flops += (s->kind == STATEMENT_each ? elements : rows) * each;
  }
  return flops;
}

/* Arithmetic of integers is not counted: some operand or the result must be a float. */
static bool meets_floats(const Graph *g, const Node *n)
{
  bool found = dtype_is_float(n->dtype);
  for (uint32_t i = 0; i < n->n_in; i++)
    found |= n->in[i].id && dtype_is_float(ir_node(g, n->in[i])->dtype);
  return found;
}

/* -1: a template file of its own, whose text is not read. Nodes that were joined into one
 * kernel add up. */
static int64_t kernel_flops(const Graph *g, const Group *group)
{
  int64_t flops = 0;
  for (uint32_t i = 0; i < group->n; i++) {
    const Node *n = ir_node(g, group->nodes[i]);
    OpTemplate tmpl = op_of(n)->tmpl;
    if (tmpl == TMPL_file) return -1;
    if (!meets_floats(g, n)) continue;
    if (tmpl == TMPL_map)
      flops += ir_elements(n) * count_statement(n, &op_of(n)->code.statements[0]);
    if (n->op == OP_grad_accumulate) flops += ir_elements(ir_node(g, n->in[0]));
    if (tmpl == TMPL_row) flops += count_row(g, group->nodes[i]);
  }
  return flops;
}

/* Two for each multiplication of an output element with its window, backward convolutions
 * alike: they do the same products in another order. */
static int64_t conv_flops(const ampc_conv *d)
{
  return 2 * d->n * conv_out_pixels(d) * conv_weights(d);
}

/* ---- bytes ---- */

/* Elements of a flat space that an argument covers: the slot of one parameter, or the range
 * that an update walks. */
static int64_t range_elements(const Inspection *in, const Group *group, const KernelArg *a)
{
  const Graph *g = in->c->graph;
  if (a->value.id) return ir_elements(ir_node(g, ir_node(g, a->value)->in[0]));
  return node_range(g, ir_node(g, group->anchor));
}

/* A kernel that only moves a part of a value (a slice) reads no more than it writes. */
static int64_t operand_bytes(const Inspection *in, const Group *group, const KernelArg *a)
{
  const Graph *g = in->c->graph;
  const Node *n = ir_node(g, a->value);
  int64_t elements = ir_elements(n);
  const Node *reader = ir_node(g, group->nodes[0]);
  if (group->n == 1 && op_of(reader)->tmpl == TMPL_move && ir_elements(reader) < elements)
    elements = ir_elements(reader);
  return elements * ir_dtype_size(in->c, a->type);
}

/* Of a buffer that is read and written: running statistics. */
static int64_t buffer_bytes(const Inspection *in, const KernelArg *a)
{
  const Parameter *p = &in->c->graph->params.at[a->index];
  int64_t bytes = ir_dtype_size(in->c, p->dtype);
  for (uint32_t i = 0; i < p->rank; i++) bytes *= p->dim[i];
  return bytes;
}

/* A gradient norm only reads what an update also writes. */
static bool reads_gradients(const Node *anchor)
{
  const OpInfo *op = op_of(anchor);
  for (uint32_t i = 0; i < op->n_file_args; i++)
    if (op->file_args[i] == FILE_grad) return true;
  return false;
}

/* What one iteration makes of it. */
static int64_t made_bytes(const Inspection *in, Value v)
{
  const Node *n = ir_node(in->c->graph, v);
  int64_t bytes = ir_bytes(in->c, n);
  return n->op == OP_stack ? bytes / n->dim[0] : bytes;
}

static void count_argument(const Inspection *in, CommandRow *row, const Group *group,
                           const KernelArg *a)
{
  bool norm = group->anchor.id && reads_gradients(ir_node(in->c->graph, group->anchor));
  switch (a->role) {
  case ARG_in:
    if (a->place.space != AMPC_STATE) row->read += operand_bytes(in, group, a);
    break;
  case ARG_out:
    row->written += made_bytes(in, a->value);
    if (a->over.id) row->read += made_bytes(in, a->over);
    break;
  case ARG_grad:
  case ARG_master:
  case ARG_moment1:
  case ARG_moment2:
  case ARG_moment3:
  case ARG_ema: {
    int64_t bytes = range_elements(in, group, a) * ir_dtype_size(in->c, AMPC_F32);
    row->read += bytes;
    if (!norm && !a->only_read) row->written += bytes;
    break;
  }
  case ARG_copy16:
  case ARG_copybf:
    row->written += range_elements(in, group, a) * 2;
    break;
  case ARG_buffer:
  case ARG_kept:
    row->read += buffer_bytes(in, a);
    row->written += buffer_bytes(in, a);
    break;
  case ARG_scratch: /* written and read back */
    row->read += own_scratch(in->c, group);
    row->written += own_scratch(in->c, group);
    break;
  case ARG_state:
  case ARG_optimizer:
  case ARG_metric:
  case ARG_stream:
    break; /* a few bytes of STATE, as are settings; or a number */
  }
}

static void count_kernel(const Inspection *in, CommandRow *row, const Group *group)
{
  KernelArgs args = part_args(in->c, group);
  for (uint32_t i = 0; i < args.n; i++) count_argument(in, row, group, &args.at[i]);
}

int64_t inspect_kernel_bytes(const Inspection *in, const Group *group)
{
  CommandRow row = {0};
  count_kernel(in, &row, group);
  return row.read + row.written;
}

/* For commands without a list of arguments: what is read, and the result, which is read too
 * where the command adds to it. */
static void count_values(const Inspection *in, CommandRow *row, const Value *reads, uint32_t n,
                         Value result, bool accumulates)
{
  const Graph *g = in->c->graph;
  for (uint32_t i = 0; i < n; i++)
    if (reads[i].id) row->read += ir_bytes(in->c, ir_node(g, reads[i]));
  row->written = made_bytes(in, result);
  if (accumulates) row->read += row->written;
}

/* Which of x, w, y is the result depends on the direction of the convolution; the others are
 * read. */
static void count_product(const Inspection *in, CommandRow *row)
{
  if (row->kind == ROW_conv) {
    Convolution p = convolution_of(in->c, row->group);
    Value result = p.desc.kind == AMPC_CONV_FORWARD ? p.y
                   : p.desc.kind == AMPC_CONV_DATA  ? p.x
                                                    : p.w;
    Value all[] = {p.x, p.w, p.bias, p.y}, reads[4];
    uint32_t n = 0;
    for (uint32_t i = 0; i < 4; i++)
      if (all[i].id != result.id) reads[n++] = all[i];
    count_values(in, row, reads, n, result, p.desc.accumulate);
    row->flops = conv_flops(&p.desc);
  } else {
    Product p = product_of(in->c, row->group);
    count_values(in, row, (Value[]){p.a, p.b, p.bias}, 3, p.c, p.desc.accumulate);
    row->flops = 2 * p.desc.m * p.desc.n * p.desc.k * p.desc.batch;
  }
}

/* Of the loops around a command: how often it is launched. */
static int64_t times_of(const Graph *g, const Group *group)
{
  int64_t times = 1;
  for (uint16_t i = ir_node(g, group->nodes[0])->loop; i; i = g->loops.at[i].parent)
    times *= g->loops.at[i].count;
  return times;
}

void inspect_count(const Inspection *in, CommandRow *row)
{
  const Graph *g = in->c->graph;
  const Group *group = &g->groups.at[row->group];
  row->read = row->written = 0;
  if (row->kind != ROW_kernel) {
    count_product(in, row);
  } else {
    for (uint32_t i = 0; i < group->n_parts; i++) count_kernel(in, row, &group->parts[i]);
    if (!group->n_parts) count_kernel(in, row, group);
    row->flops = kernel_flops(g, group);
  }
  row->times = times_of(g, group);
  row->read *= row->times;
  row->written *= row->times;
  if (row->flops > 0) row->flops *= row->times;
}
