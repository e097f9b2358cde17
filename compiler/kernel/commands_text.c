/* Prints --emit=commands: what each group of nodes becomes, and each kernel as data: its arguments,
 * how its threads walk, and what each node reads, computes and stores. */
#include "kernels.h"
#include "kernel_parts.h"

typedef struct Reader { /* the node whose formula is printed */
  const Kernel *k;
  Value v;
  const Node *n;
} Reader;

/* ---- formulas ---- */

/* Returns "x[r * 32 + c]", "%14" for a value of this kernel, or a number. */
static const char *operand_text(const Kernel *k, Value v, const Index *at)
{
  Value root = value_root(k->g, v);
  const Node *n = ir_node(k->g, root);
  if (n->op == OP_number) return ir_number_text(k->c, attr_float(n, "value"));
  if (op_has(n, T_literal))
    return arena_printf(k->c->arena, "%lld", (long long)attr_int(n, "value"));
  for (uint32_t i = 0; i < k->group->n; i++)
    if (k->group->nodes[i].id == root.id) return arena_printf(k->c->arena, "%%%u", root.id);
  return arena_printf(k->c->arena, "%s[%s]", pointer_name(k, v), index_text(k, at));
}

static const char *attribute_value(const Reader *r, uint32_t i)
{
  if (op_of(r->n)->signature.attr[i].kind == ATTR_float)
    return ir_number_text(r->k->c, r->n->attr[i].f);
  return arena_printf(r->k->c->arena, "%lld", (long long)r->n->attr[i].i);
}

static const char *operand_word(const void *frame, const Formula *f)
{
  static const char *const words[] = {
      [FORMULA_index] = "$i",   [FORMULA_column] = "$c",      [FORMULA_length] = "$n",
      [FORMULA_size] = "$size", [FORMULA_normal] = "$normal", [FORMULA_uniform] = "$uniform"};
  const Reader *r = frame;
  const NodeAccess *a = access_of(r->k, r->v);
  switch (f->kind) {
  case FORMULA_number:
  case FORMULA_name:
  case FORMULA_call:
    return f->name;
  case FORMULA_element:
    if (!r->n->in[f->index].id) return f->absent;
    return operand_text(r->k, r->n->in[f->index], &a->element[f->index]);
  case FORMULA_row_value:
    if (!r->n->in[f->index].id) return f->absent;
    return operand_text(r->k, r->n->in[f->index], &a->row[f->index]);
  case FORMULA_attribute:
    return attribute_value(r, f->index);
  default:
    return words[f->kind];
  }
}

static const Formula *standing_formula(const void *frame, const Formula *f)
{
  return code_standing(((const Reader *)frame)->n, f);
}

/* Prints the statements of a node's code: "max m = x[i]; sum s = exp(x[i] - m)". */
static void put_statements(Text *out, const Reader *r)
{
  static const char *const kinds[] = {
      [STATEMENT_value] = "",           [STATEMENT_near] = "near ", [STATEMENT_sum] = "sum ",
      [STATEMENT_product] = "product ", [STATEMENT_max] = "max ",   [STATEMENT_min] = "min ",
      [STATEMENT_first] = "first ",     [STATEMENT_let] = "let ",   [STATEMENT_each] = "each ",
      [STATEMENT_row] = "row "};
  const OpCode *code = &op_of(r->n)->code;
  bool any = false;
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    if (!code_stands(r->n, s->condition)) continue;
    text_printf(out, "%s%s", any ? "; " : "", kinds[s->kind]);
    if (s->name) text_printf(out, "%s = ", s->name);
    text_puts(out, formula_text(r->k->c->arena, &(FormulaTexts){r, operand_word, standing_formula},
                                s->value));
    any = true;
  }
  if (!any) text_puts(out, operand_text(r->k, r->n->in[0], access_of(r->k, r->v)->element));
}

/* ---- kernels ---- */

/* Prints the loops: "loop [100352, 32] by 8, 2 rows a thread". */
static void put_loops(Text *out, const Kernel *k)
{
  const MapWalk *m = k->part->map;
  const RowLoops *r = k->part->rows;
  if (m) {
    text_printf(out, "    loop %s", ir_sizes_text(k->c->arena, m->left.dim, m->left.rank));
    if (m->vector > 1) text_printf(out, " by %u", m->vector);
    if (m->rows > 1) text_printf(out, ", %u rows a thread", m->rows);
  } else if (r) {
    text_printf(out, "    rows [%lld, %lld, %lld] by %u", (long long)r->shape.outer,
                (long long)r->shape.length, (long long)r->shape.inner, r->vector);
    if (r->shape.parts)
      text_printf(out, ", %lld sums of %lld", (long long)r->shape.parts,
                  (long long)r->shape.part_rows);
    text_printf(out, ", %u threads a %s",
                r->columns ? (uint32_t)(CUDA_BLOCK / r->tile.lanes) : r->walk.threads,
                r->columns ? "column" : "row");
  } else {
    text_printf(out, "    template %s",
                kernel_template(k) == TMPL_file ? kernel_file(k)->name
                                                : op_of(kernel_main_node(k))->name);
  }
  text_puts(out, "\n");
}

/* Returns where node v of a map or of rows stores its result in argument `to`. */
static const char *store_text(const Kernel *k, Value v, uint32_t to)
{
  const RowLoops *r = k->part->rows;
  bool element =
      !r || is_row_element(k->g, r, v) || op_of(ir_node(k->g, v))->code.result == STATEMENT_each;
  const Index own = element ? index_at(VAR_i) : row_result_index(r);
  return arena_printf(k->c->arena, "%s[%s]", k->arg_names[to],
                      index_text(k, result_index(k, to, &own)));
}

/* Prints "    %14 add f16 = x[i] + bias[c] -> add[i]". */
static void put_node(Text *out, const Kernel *k, Value v)
{
  const Node *n = ir_node(k->g, v);
  bool walks = k->part->map || k->part->rows;
  uint32_t to = argument_of(k, v);
  text_printf(out, "    %%%u %s %s", v.id, op_of(n)->name, ir_dtype_name(n->dtype));
  if (walks) text_puts(out, " = ");
  if (walks) put_statements(out, &(Reader){k, v, n});
  if (to < k->args.n) text_printf(out, " -> %s", walks ? store_text(k, v, to) : k->arg_names[to]);
  text_puts(out, "\n");
}

static void put_part_data(Text *out, const Kernel *launch, uint32_t part)
{
  Kernel k = *launch;
  k.part = &launch->command->parts[part];
  k.group = k.part->group;
  bool alone = part >= launch->group->last;
  if (launch->group->n_parts) text_printf(out, "    part %u", part + 1);
  if (launch->group->n_parts && !alone) text_printf(out, ", grid %u", k.part->at.grid);
  if (launch->group->n_parts) text_puts(out, alone ? ", by the last block\n" : "\n");
  put_loops(out, &k);
  for (uint32_t i = 0; i < k.group->n; i++) put_node(out, &k, k.group->nodes[i]);
}

/* ---- commands ---- */

/* Prints for example "    x                in        f16[32, 512]      work+64". */
static void put_argument(Text *out, const Kernel *k, uint32_t i)
{
  static const char *const roles[] = {
      [ARG_in] = "in",           [ARG_out] = "out",        [ARG_state] = "state",
      [ARG_grad] = "gradients",  [ARG_master] = "weights", [ARG_optimizer] = "optimizer",
      [ARG_moment1] = "moment",  [ARG_moment2] = "moment", [ARG_metric] = "metric",
      [ARG_moment3] = "moment",  [ARG_ema] = "averages",   [ARG_residue] = "residue",
      [ARG_copy] = "copies",     [ARG_buffer] = "buffer",  [ARG_kept] = "kept buffer",
      [ARG_scratch] = "scratch", [ARG_stream] = "stream",  [ARG_scale1] = "scales",
      [ARG_scale2] = "scales",   [ARG_scale3] = "scales"};
  const KernelArg *a = &k->args.at[i];
  bool tensor = a->role == ARG_in || a->role == ARG_out;
  bool plain = ampc_space_of(a->place.space)->type != AMPC_DTYPE_COUNT;
  const char *type = tensor  ? ir_type_text(k->c, ir_node(k->g, a->value))
                     : plain ? ir_dtype_name(a->type)
                             : element_type(a);
  text_printf(out, "    %-24s %-11s %-20s ", k->arg_names[i],
              a->role == ARG_out && a->over.id ? "in, out" : roles[a->role], type);
  if (a->role == ARG_stream)
    text_printf(out, "%lld\n", (long long)a->place.offset);
  else
    text_printf(out, "%s+%lld\n", ampc_space_of(a->place.space)->name, (long long)a->place.offset);
}

static void put_library_call(Text *out, Compile *c, const Command *k)
{
  static const char *const names[2][4] = {{"a", "b", "bias", "c"}, {"x", "w", "bias", "y"}};
  static const char *const kinds[] = {"", ", gradient of x", ", gradient of w"};
  bool conv = k->kind == COMMAND_conv;
  text_printf(out, "%s%s%s\n", conv ? "convolution" : "product", conv ? kinds[k->conv.kind] : "",
              k->columns ? ", or a kernel without cuDNN" : "");
  for (uint32_t i = 0; i < 4; i++) {
    if (!k->operands[i].id) continue;
    const Node *n = ir_node(c->graph, value_root(c->graph, k->operands[i]));
    const char *role = i != k->result ? "in" : k->accumulates ? "in, out" : "out";
    text_printf(out, "    %-24s %-11s %-20s %s+%lld\n", names[conv][i], role, ir_type_text(c, n),
                ampc_space_of(n->place.space)->name, (long long)n->place.offset);
  }
  if (!conv)
    text_printf(out, "    m %lld, n %lld, k %lld, batch %lld\n", (long long)k->gemm.m,
                (long long)k->gemm.n, (long long)k->gemm.k, (long long)k->gemm.batch);
}

static void put_command(Printer *p, uint32_t group, Text *out)
{
  Compile *c = p->c;
  const Command *command = command_of(c->graph, group);
  text_printf(out, "  %s: ", command->name);
  if (command_by_library(command)) {
    put_library_call(out, c, command);
    return;
  }
  if (command->kind == COMMAND_exchange) {
    text_puts(out, "exchange between members\n");
    return;
  }
  Kernel k = kernel_of(p, group);
  name_arguments(&k);
  text_printf(out, "kernel, grid %u, block %u", k.part->at.grid, k.part->at.block);
  if (k.group->in_turn) text_puts(out, ", parts in turn");
  if (command->kernel != group) text_printf(out, ", equal to %s", command->kernel_name);
  text_puts(out, command->library ? ", or attention by cuDNN\n" : "\n");
  for (uint32_t i = 0; i < k.args.n; i++) put_argument(out, &k, i);
  for (uint32_t i = 0; i < command->n_parts; i++) put_part_data(out, &k, i);
}

void emit_commands(Compile *c, Text *out)
{
  const Graph *g = c->graph;
  Printer p;
  Text unused = text_new(c->arena);
  int block = -1;
  printer_begin(&p, c, &unused);
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (!command_of(g, i)->kind) continue;
    uint16_t own = ir_node(g, g->groups.at[i].nodes[g->groups.at[i].n - 1])->block;
    if (own != block) text_printf(out, "%s\n", ir_block_text(c, own));
    block = own;
    put_command(&p, i, out);
  }
}
