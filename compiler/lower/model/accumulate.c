/* Lowers `accumulate(f64, sum, layer_norm)` in `precision`: these ops and their gradients compute
 * sums in double and round once.
 *
 * As with `policy`, the graph records the ops of the op table, and pass precision applies the
 * clause to every node of the op. A def of the layer library is elaborated in a region that has the
 * type of sums. Gradients are in the region of the node that they belong to. */
#include "model.h"

static bool want_sums(Lower *l, Datum d, Span span, bool *out)
{
  if (d_is(d, D_error)) return false;
  if (d.kind == D_dtype && d.as.dtype == AMPC_F32) return *out = false, true;
  if (d.kind == D_word && strcmp(d.as.text, "f64") == 0) return *out = true, true;
  if (d.kind == D_dtype)
    fail(l, E209, span, "sums are f32 or f64, got %s", ir_dtype_name(d.as.dtype));
  else
    fail(l, E209, span, "sums are f32 or f64, got %s", d_kind_text(l, d));
  return diag_help(l->c, "`accumulate(f64, sum)`: the type first, then the ops");
}

/* Returns the op in which a def ends; it has the def's name, such as layer_norm. */
static const OpInfo *op_of_def(const Datum *d)
{
  const char *name = d->as.function->def->name.text;
  for (OpKind op = 0; op < OP_COUNT; op++)
    if (strcmp(op_row(op)->name, name) == 0) return op_row(op);
  return NULL;
}

static bool adds_up(Lower *l, Datum d, Span span, bool wide)
{
  OpKind op;
  const OpInfo *row = NULL;
  if (d_is(d, D_error)) return false;
  if (d.kind == D_function && d.as.function->file->builtin && !d.as.function->self) {
    row = op_of_def(&d);
  } else if (policy_table_op(d, &op)) {
    row = op_row(op);
  } else {
    fail(l, E407, span, "`accumulate` takes functions that compute sums, got %s",
         d_kind_text(l, d));
    return diag_help(l->c, "write names of functions: `accumulate(f64, sum, layer_norm)`");
  }
  const char *why = row ? op_against_wide(row) : NULL;
  if (!wide || !why) return true;
  return refuse(l, E407, span, "`%s` cannot sum in f64: %s", row->name, why);
}

void clause_accumulate(Lower *l, const Args *args)
{
  bool wide = false;
  if (!first_and_ops(l, args, "accumulate", "type", "`accumulate(f64, sum, layer_norm)`")) return;
  if (!want_sums(l, args->at.at[0].value, args->at.at[0].span, &wide)) return;
  for (uint32_t i = 1; i < args->at.n; i++) {
    Datum d = args->at.at[i].value;
    OpKind op;
    if (!adds_up(l, d, args->at.at[i].span, wide)) continue;
    if (!policy_table_op(d, &op)) {
      vec_push(l->arena, &l->sums, ((Sums){d, wide}));
      continue;
    }
    if (!l->g->wide) l->g->wide = arena_array(l->arena, bool, OP_COUNT);
    l->g->wide[op] = wide;
  }
}

void accumulate_enter(Lower *l, const Callable *f)
{
  uint32_t left = 2;
  if (!l->sums.n || !f->file->builtin || !l->run || l->settings_of) return;
  Datum callee = {.kind = D_function, .as.function = f};
  for (uint32_t i = l->sums.n; i-- > 0; left = 2) {
    if (!d_equal(l->sums.at[i].op, callee, &left)) continue;
    l->at.region = ir_region_sums(l->c, l->at.region, l->sums.at[i].wide);
    return;
  }
}
