/* Lowers `policy(f32, gelu, my_op)` in `precision`, which moves ops to another category of
 * autocast.
 *
 * For an op of the op table the graph records the category, and pass precision applies it to every
 * node of the op, including nodes of `+` and `@`. As in PyTorch's autocast, the arguments of a def
 * of the layer library are cast, and its body runs with autocast off. For an op of the job the
 * category replaces `cast` (own.c). All of this applies in 16-bit regions only, since categories
 * have no meaning elsewhere. */
#include "model.h"

/* ---- the clause ---- */

static const char *class_text(OpPrecision class)
{
  return class == PREC_low       ? "low"
         : class == PREC_f32     ? "f32"
         : class == PREC_promote ? "promote"
                                 : "none";
}

static bool want_class(Lower *l, Datum d, Span span, OpPrecision *out)
{
  static const OpPrecision classes[] = {PREC_low, PREC_promote};
  if (d_is(d, D_error)) return false;
  if (d.kind == D_none) return *out = PREC_none, true;
  if (d.kind == D_dtype && d.as.dtype == AMPC_F32) return *out = PREC_f32, true;
  for (size_t i = 0; d.kind == D_word && i < sizeof classes / sizeof *classes; i++)
    if (strcmp(d.as.text, class_text(classes[i])) == 0) return *out = classes[i], true;
  fail(l, E209, span, "a category of ops is low, f32, promote or none, got %s", d_kind_text(l, d));
  return diag_help(l->c, "`policy(f32, gelu)`: the category first, then the ops");
}

bool policy_table_op(Datum d, OpKind *out)
{
  if (d.kind == D_op) return *out = d.as.op, true;
  return d.kind == D_native && op_lookup(d.as.native->name, out);
}

/* True if `d` has a category: ops that compute do; ops that move data or state a type do not. */
static bool has_class(Lower *l, Datum d, Span span)
{
  OpKind op;
  bool table = policy_table_op(d, &op);
  if (d.kind == D_own || (table && !op_says_type(op_row(op)))) return true;
  if (d.kind == D_function && d.as.function->file->builtin && !d.as.function->self) return true;
  if (d_is(d, D_error)) return false;
  if (d.kind == D_class) {
    fail(l, E209, span, "`%s` is a layer; a policy is for the ops that layers call",
         d.as.class->name);
    diag_help(
        l->c,
        "for layers write `autocast(f32, \"**.name\")` in `model`; for an op name its function");
  } else if (d.kind == D_function) {
    fail(l, E209, span, "`%s` is a def of the job; each op in it has a category of its own",
         d_text(l, d));
    diag_help(l->c, "write `autocast(f32) { ... }` in its body");
  } else {
    fail(l, E209, span, "a policy is for ops, got %s", d_kind_text(l, d));
    diag_help(l->c, "write names of functions and of ops of the job: `policy(f32, gelu, my_op)`");
  }
  return false;
}

bool first_and_ops(Lower *l, const Args *args, const char *clause, const char *first,
                   const char *example)
{
  for (uint32_t i = 0; i < args->at.n; i++)
    if (args->at.at[i].key)
      return refuse(l, E205, args->at.at[i].key_span, "`%s` has no named arguments", clause);
  if (args->at.n >= 2) return true;
  fail(l, E205, args->span, "`%s` takes a %s and then ops", clause, first);
  return diag_help(l->c, "%s", example);
}

void clause_policy(Lower *l, const Args *args)
{
  OpPrecision class = PREC_none;
  if (!first_and_ops(l, args, "policy", "category", "`policy(f32, gelu, my_op)`")) return;
  if (!want_class(l, args->at.at[0].value, args->at.at[0].span, &class)) return;
  for (uint32_t i = 1; i < args->at.n; i++) {
    Datum d = args->at.at[i].value;
    OpKind op;
    if (!has_class(l, d, args->at.at[i].span)) continue;
    if (policy_table_op(d, &op)) {
      if (!l->g->policy) l->g->policy = arena_array(l->arena, uint8_t, OP_COUNT);
      l->g->policy[op] = (uint8_t)(class + 1);
      continue;
    }
    const char *label = arena_printf(l->arena, "`policy(%s, %s)`", class_text(class), d_text(l, d));
    vec_push(l->arena, &l->policies, (Policy){d, class, args->at.at[i].span, label});
  }
}

const Policy *policy_of(const Lower *l, Datum callee)
{
  uint32_t left = 2;
  for (uint32_t i = l->policies.n; i-- > 0; left = 2)
    if (d_equal(l->policies.at[i].op, callee, &left)) return &l->policies.at[i];
  return NULL;
}

/* ---- a call of a def of the library ---- */

/* The casts of the arguments of one call, to the category's type or to the widest type. */
typedef struct Casting {
  const Policy *policy;
  DType low;
  VEC(Value) floats; /* for `promote`: the value, one of the region's type, then all */
} Casting;

static bool is_float(Lower *l, Datum d)
{
  bool tensor = d.kind == D_tensor || d.kind == D_param;
  if (d.kind == D_tensor && ir_node(l->g, d.as.tensor)->weak) return false;
  return tensor && dtype_is_float(tensor_dtype(l, d));
}

static void find_floats(Lower *l, Casting *k, Datum d, Span span)
{
  for (uint32_t i = 0; d.kind == D_list && i < d.n; i++) find_floats(l, k, d.as.list[i], span);
  Value v = is_float(l, d) ? as_tensor(l, d, span) : (Value){0};
  if (v.id) vec_push(l->arena, &k->floats, v);
}

static Value cast_value(Lower *l, Casting *k, Value x)
{
  if (k->policy->class == PREC_promote) {
    k->floats.at[0] = x;
    return ir_append(l->c, &l->at, OP_cast_like, k->floats.at, k->floats.n, NULL);
  }
  DType d = k->policy->class == PREC_low ? k->low : AMPC_F32;
  return ir_cast_asked(l->c, &l->at, x, d);
}

static Datum cast_argument(Lower *l, Casting *k, Datum d, Span span)
{
  if (d.kind == D_list) {
    DatumVec items = {0};
    for (uint32_t i = 0; i < d.n; i++)
      vec_push(l->arena, &items, cast_argument(l, k, d.as.list[i], span));
    Datum list = d_list_of(l, &items);
    list.tuple = d.tuple;
    return list;
  }
  if (!is_float(l, d)) return d;
  Value x = as_tensor(l, d, span);
  return x.id ? d_tensor(cast_value(l, k, x)) : d_of(D_error);
}

void policy_enter(Lower *l, const Callable *f, Args *args)
{
  DType low = region_low(l->g->regions.at[l->at.region].kind);
  if (!l->policies.n || !ampc_is_narrow(low) || !f->file->builtin || !l->run || l->settings_of)
    return;
  Casting k = {.policy = policy_of(l, (Datum){.kind = D_function, .as.function = f}), .low = low};
  if (!k.policy) return;
  l->at.region = region_push(l, REGION_off, false, k.policy->span, k.policy->label);
  if (k.policy->class == PREC_none) return;
  l->at.span = diag_user_span(l->c, args->span);
  l->at.why = WHY_region;
  Value number = ir_number(l->c, &l->at, 0);
  vec_push(l->arena, &k.floats, (Value){0});
  vec_push(l->arena, &k.floats, ir_cast(l->c, &l->at, number, k.low));
  for (uint32_t i = 0; i < args->at.n; i++)
    find_floats(l, &k, args->at.at[i].value, args->at.at[i].span);
  for (uint32_t i = 0; i < args->at.n; i++)
    args->at.at[i].value = cast_argument(l, &k, args->at.at[i].value, args->at.at[i].span);
  l->at.why = WHY_none;
}
