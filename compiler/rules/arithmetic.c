/* Finds the three types of an op: those in which it computes, sums and stores. They follow from its
 * row, from the kernels and libraries that run it, and from the job's `accumulate`. Dumps and
 * reports print them.
 *
 * The compiler's own kernels compute in f32, whatever types they load and store. They sum in f32,
 * or in f64 if the job requests it. Cumulative ops sum in f64. Matrix products read their operands
 * in the stored type, and sum in f32. */
#include "rules.h"

/* True if a statement of the row code sums or multiplies. */
static bool accumulates(const OpInfo *op)
{
  for (uint32_t i = 0; op->tmpl == TMPL_row && i < op->code.n_statements; i++) {
    StatementKind kind = op->code.statements[i].kind;
    if (kind == STATEMENT_near || kind == STATEMENT_sum || kind == STATEMENT_product) return true;
  }
  return false;
}

/* True if the op's rows are always split into parts: Note [channels] in ops.def. */
static bool has_parts(const OpInfo *op)
{
  for (uint32_t i = 0; i < op->code.n_statements; i++) {
    const CodeStatement *s = &op->code.statements[i];
    if (s->kind == STATEMENT_near || formula_has(s->value, FORMULA_size)) return true;
  }
  return false;
}

const char *op_against_wide(const OpInfo *op)
{
  if (op_by_library(op)) return "the libraries for products sum in f32";
  if (op->traits & T_tiles) return "its products are summed in f32";
  uint32_t channel;
  if (has_parts(op) || attr_find(op, "channel", &channel))
    return "channel statistics are summed in parts, which are f32";
  if (op->tmpl == TMPL_own) return "its kernel text computes the sums";
  if (op->tmpl == TMPL_row) return accumulates(op) ? NULL : "it computes no sum";
  bool broadcasts = op->tmpl == TMPL_map && (op->traits & T_mixes); /* its gradient is a sum */
  return broadcasts ? NULL : "it computes no sum";
}

bool op_is_wide(const Compile *c, const Node *n)
{
  const Graph *g = c->graph;
  if (!g->regions.at[n->region].wide || op_is_step(n)) return false;
  return accumulates(op_of(n)) && !has_parts(op_of(n)) &&
         dtype_is_float(ir_in((Compile *)c, n, 0)->dtype);
}

/* ---- types ---- */

/* Returns the type in which a kernel holds one number. Integers below 64 bits are C's int. */
static const char *held_in(Compile *c, const Node *n)
{
  if (ir_meets_floats(c->graph, n)) return c->options.real64 ? "f64" : "f32";
  return ir_dtype_name(n->dtype == AMPC_I64 ? AMPC_I64 : AMPC_I32);
}

/* True if the op computes no new numbers: it compares, returns one of its operands, or moves
 * elements. */
static bool only_picks(const OpInfo *op)
{
  const uint64_t none = T_effect | T_picks | T_compares | T_tests | T_as_is;
  bool copies = op->code.n_statements == 1 && !op->code.statements[0].value->n;
  if (op->traits & none || copies) return true;
  if (op->tmpl == TMPL_row) return !accumulates(op);
  if (op->tmpl == TMPL_file) return !(op->traits & T_totals);
  return op->tmpl != TMPL_map;
}

static OpTypes types_of_product(Compile *c, const Node *n)
{
  DType operands = ir_in(c, n, 0)->dtype;
  bool rounds = ir_is_tf32(c, n) && operands == AMPC_F32;
  return (OpTypes){rounds ? "tf32" : ir_dtype_name(operands), "f32", NULL};
}

static OpTypes types_of_tiles(Compile *c, const Node *n)
{
  bool library = rule_by_library(c, n);
  return (OpTypes){library ? ir_dtype_name(ir_in(c, n, 0)->dtype) : "f32", "f32", NULL};
}

OpTypes op_types(Compile *c, const Node *n)
{
  const OpInfo *op = op_of(n);
  OpTypes t = {0};
  if (op_by_library(op)) {
    t = types_of_product(c, n);
  } else if (op->traits & T_tiles) {
    t = types_of_tiles(c, n);
  } else if (!only_picks(op)) {
    bool along = op->traits & T_along && ir_meets_floats(c->graph, n);
    t.compute = along ? "f64" : held_in(c, n);
    if (accumulates(op) || op->traits & T_totals)
      t.accumulate = op_is_wide(c, n) ? "f64" : ir_meets_floats(c->graph, n) ? t.compute : "i64";
  }
  t.store = ir_dtype_name(n->dtype);
  return t;
}
